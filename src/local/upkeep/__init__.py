"""What is done to a data directory as a whole: copies of it, and their way back."""
