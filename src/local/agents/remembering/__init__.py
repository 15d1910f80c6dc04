"""What the memory agent is made of."""
