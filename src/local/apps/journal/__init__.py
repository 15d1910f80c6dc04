"""What is on record: looked at, taken out, and played again."""
