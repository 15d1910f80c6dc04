"""What is done while nobody asks anything: when it is time, what it may cost, and each routine that does it."""
