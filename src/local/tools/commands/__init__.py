"""The tools that run commands, and what they share."""
