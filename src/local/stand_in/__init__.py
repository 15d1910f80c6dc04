"""The stand-in: a small program with fixed rules that answers in the place of a language model."""
