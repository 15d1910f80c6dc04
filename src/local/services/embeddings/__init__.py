"""Texts as vectors: a protocol, a bundled model on NumPy and models of a model server. Start at `embedder`."""
