"""What a model is asked about an exchange, how its reply is read, and which of it may be believed."""
