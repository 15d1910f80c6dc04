"""The common parts of every tool: its schema, its arguments, and the ledger of its effects."""
