"""What turns texts into vectors, and the embedding models of a model server, such as Ollama's nomic-embed-text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

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


Embed = Callable[[str, Sequence[str]], Awaitable[list[list[float]]]]
_BATCH_TEXTS = 32


@dataclass(frozen=True, slots=True)
class Manner:
    """How one model wants to be asked: what goes before a question and a text, and `Embedder.relevance_floor`."""

    query_prefix: str = ""
    document_prefix: str = ""
    relevance_floor: float = 0.5


MANNERS: Mapping[str, Manner] = {
    "nomic-embed-text": Manner("search_query: ", "search_document: ", 0.55),
    "mxbai-embed-large": Manner("Represent this sentence for searching relevant passages: ", "", 0.5),
    "all-minilm": Manner(relevance_floor=0.30),
}


class ServedEmbedder:
    """Made by `connect`, which asks the server how long its vectors are."""

    def __init__(
        self, embed: Embed, model: str, dimensions: int, manner: Manner, in_background: Embed | None = None
    ) -> None:
        self._embed, self._model, self._manner = embed, model, manner
        self._in_background = in_background or embed
        self.name, self.dimensions, self.relevance_floor = model, dimensions, manner.relevance_floor

    @classmethod
    async def connect(
        cls, embed: Embed, model: str, manner: Manner | None = None, *, in_background: Embed | None = None
    ) -> Self:
        """`embed` is a model server's, as in `ChatModel.embed`; `in_background` the same for what nobody waits for,
        which is all but questions. Without `manner` the known one of the model is taken.

        Raises `ModelError` if the server or the model is not there.
        """
        (vector,) = await (in_background or embed)(model, ["dimensions"]) or [[]]
        if not vector:
            raise ModelError(f"{model} returned an empty vector; it is no embedding model")
        name = model.rpartition("/")[2].partition(":")[0]
        return cls(embed, model, len(vector), manner or MANNERS.get(name, Manner()), in_background)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return await self._embed_all(self._embed, [self._manner.query_prefix + text for text in texts])

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return await self._embed_all(self._in_background, [self._manner.document_prefix + text for text in texts])

    async def _embed_all(self, embed: Embed, texts: Sequence[str]) -> Vectors:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            vectors += await embed(self._model, texts[start : start + _BATCH_TEXTS])
        return normalised(vectors, self.dimensions, len(texts))
