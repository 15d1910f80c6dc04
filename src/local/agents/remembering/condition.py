"""What can be said of a memory from outside, with or without its process: for the doctor."""

from __future__ import annotations

from pathlib import Path

from local.services.embeddings.minilm import MiniLmEmbedder
from local.services.engrams.status import Condition, examine

__all__ = ["DIRECTORY", "Condition", "examine", "try_bundled_model"]

DIRECTORY = "engrams"  # in the data directory


async def try_bundled_model(directory: Path | None = None) -> str:
    """Embed something with the bundled model, or the one in a directory; returns its name. Raises `ModelError`."""
    embedder = MiniLmEmbedder(directory)
    await embedder.embed_queries(["Does it work?"])
    return embedder.name
