"""The tools by which the model keeps notes."""
