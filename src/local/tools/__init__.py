"""What every tool is made of: its schema, its arguments, and the ledger of its effects."""
