"""Looks at everything that LoCAL2 needs and says what to do about what is missing."""
