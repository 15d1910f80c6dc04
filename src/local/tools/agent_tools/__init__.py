"""The tools by which a model has work done by agents, and what decides about these."""
