"""What the critic is made of."""
