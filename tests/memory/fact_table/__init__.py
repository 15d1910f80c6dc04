"""Cases of what a user says, and a book of the facts in it."""
