"""Talking to LoCAL2 in a terminal: one question, or a conversation."""
