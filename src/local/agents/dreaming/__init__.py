"""When it is time to look back over conversations, and what has been read."""
