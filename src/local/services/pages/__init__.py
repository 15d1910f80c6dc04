"""Pages of the web: which addresses may be fetched, fetching one, and the text of what comes back."""
