"""What the owner has written for the assistant: standing instructions, and its soul."""
