"""Which model is asked: chains with fallback, retries, and what models of different sizes are offered."""
