"""Embeddings without a model: hashed bags of words, so that texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
import re

DIMENSIONS = 768


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A deterministic vector of length one (all zeros for a text without words); shape (`dimensions`,).

    Feature hashing (Weinberger et al. 2009): each word adds or subtracts one at a position that its hash names.
    """
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        digest = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())
        vector[digest % DIMENSIONS] += 1.0 if digest >> 63 else -1.0
    vector = vector[:dimensions]
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector
