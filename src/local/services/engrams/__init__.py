"""What is remembered of every exchange, and finding it again. Start at `service`."""
