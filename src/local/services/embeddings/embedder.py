"""What turns texts into vectors, as the rest of the system sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from local.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """One embedding model. Every failure is a `ModelError` that says what to do about it."""

    @property
    def name(self) -> str:
        """Names the vectors: those of two names cannot be compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    @property
    def relevance_floor(self) -> float:
        """The cosine of a question and a text below which they have, for this model, nothing to do with each other."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """What is asked for: shape (texts, dimensions), each row of length 1."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """What is searched: shape (texts, dimensions), each row of length 1."""
        ...


def normalised(vectors: Sequence[Sequence[float]] | Vectors, dimensions: int, count: int) -> Vectors:
    """The rows at length 1. Raises `ModelError` for another shape and for rows that have no direction."""
    import numpy as np

    try:
        rows = np.asarray(vectors, dtype=np.float32).reshape(count, dimensions)
    except ValueError:
        raise ModelError(f"the embedding model did not return {count} vectors of {dimensions} numbers") from None
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelError("the embedding model returned a vector without a direction")
    return np.asarray(rows / lengths, dtype=np.float32)
