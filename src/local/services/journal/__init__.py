"""The journal's store: messages under numbers, and what each durable consumer still needs. Start at `store`."""
