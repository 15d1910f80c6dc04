"""Files that users attach to their questions: what they are, what is read of them, where they are kept."""
