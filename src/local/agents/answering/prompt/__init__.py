"""The system prompt: what it is made from, its sections, and the order in which they stand."""
