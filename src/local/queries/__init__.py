"""Ask a question and follow it: the asker, the view of a query, and its record."""
