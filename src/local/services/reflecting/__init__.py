"""Looking back over conversations: what a model is asked, and how its reply is read."""
