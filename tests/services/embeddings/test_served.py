"""Embedding models of a server: asked the way they want to be, and believed only where they make sense."""

from collections.abc import Sequence

import numpy as np
import pytest

from local.core.errors import ModelError
from local.memory.embeddings import EmbeddingPrompts, ServedEmbedder


class Server:
    """Embeds a text as its length and 1."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.answer: list[list[float]] | None = None

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append((model, list(texts)))
        return [[float(len(text)), 1.0] for text in texts] if self.answer is None else self.answer


@pytest.fixture
def server() -> Server:
    return Server()


async def test_nomic_gets_its_prefixes_whatever_its_tag(server: Server) -> None:
    embedder = await ServedEmbedder.connect(server.embed, "nomic-embed-text:v1.5")
    await embedder.embed_queries(["tea"])
    await embedder.embed_documents(["I like tea"])
    assert [texts for _, texts in server.asked[1:]] == [["search_query: tea"], ["search_document: I like tea"]]
    assert (embedder.name, embedder.dimensions) == ("nomic-embed-text:v1.5", 2)
    elsewhere = await ServedEmbedder.connect(server.embed, "attic/nomic-embed-text")
    assert elsewhere.relevance_floor == embedder.relevance_floor


async def test_all_but_questions_is_asked_for_in_the_background(server: Server) -> None:
    background = Server()
    embedder = await ServedEmbedder.connect(server.embed, "new", in_background=background.embed)
    await embedder.embed_documents(["I like tea"])
    await embedder.embed_queries(["tea"])
    assert [texts for _, texts in background.asked] == [["dimensions"], ["I like tea"]]
    assert [texts for _, texts in server.asked] == [["tea"]]


async def test_a_manner_can_be_given_for_any_model(server: Server) -> None:
    embedder = await ServedEmbedder.connect(server.embed, "new", EmbeddingPrompts("q ", "d ", 0.2))
    await embedder.embed_queries(["tea"])
    assert server.asked[-1] == ("new", ["q tea"])
    assert embedder.relevance_floor == 0.2


async def test_vectors_come_normalised_and_in_order_over_many_requests(server: Server) -> None:
    embedder = await ServedEmbedder.connect(server.embed, "new")
    vectors = await embedder.embed_documents(["x" * length for length in range(70)])
    assert max(len(texts) for _, texts in server.asked) == 32
    assert np.allclose(vectors[:, 0] / vectors[:, 1], range(70))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


@pytest.mark.parametrize("answer", [[], [[1.0, 2.0], [1.0, 2.0]], [[1.0]], [[0.0, 0.0]], [[float("nan"), 1.0]]])
async def test_vectors_that_cannot_be_are_refused(server: Server, answer: list[list[float]]) -> None:
    embedder = await ServedEmbedder.connect(server.embed, "new")
    server.answer = answer
    with pytest.raises(ModelError, match="the embedding model"):
        await embedder.embed_queries(["tea"])


@pytest.mark.parametrize("answer", [[], [[]]])
async def test_a_model_that_does_not_embed_is_told(server: Server, answer: list[list[float]]) -> None:
    server.answer = answer
    with pytest.raises(ModelError, match="new returned an empty vector; it is no embedding model"):
        await ServedEmbedder.connect(server.embed, "new")
