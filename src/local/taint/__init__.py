"""What is allowed while untrusted content is in front of the model."""
