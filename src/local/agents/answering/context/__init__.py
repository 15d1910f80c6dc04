"""The model's context window: what of a conversation goes into one prompt, and what has to make room."""
