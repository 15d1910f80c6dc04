"""Jobs that are due at set times: when, which of them, and what became of them."""
