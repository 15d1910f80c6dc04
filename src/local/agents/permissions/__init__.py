"""What the gatekeeper is made of."""
