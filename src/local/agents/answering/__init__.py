"""What the generator is made of."""
