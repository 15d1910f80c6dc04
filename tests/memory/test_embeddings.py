"""The bundled embedding model does as its reference implementation; a server's is believed where it makes sense."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from local.core.errors import ModelError
from local.memory.embeddings import LinearLayer, MiniLmEmbedder, ServedEmbedder
from local.memory.rows_on_disk import RowsOnDisk

TEXTS = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]


@pytest.fixture(scope="module")
def minilm() -> MiniLmEmbedder:
    return MiniLmEmbedder()


async def test_similarities_are_those_of_the_reference_implementation(minilm: MiniLmEmbedder) -> None:
    """As published with the model: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2"""
    vectors = await minilm.embed_documents(TEXTS)
    assert vectors.shape == (4, minilm.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(vectors[0] @ vectors[1:].T, [0.695, 0.943, 0.257], atol=2e-3)


async def test_a_text_has_the_same_vector_alone_and_among_longer_ones(minilm: MiniLmEmbedder) -> None:
    alone = await minilm.embed_queries([TEXTS[0]])
    among = await minilm.embed_documents([*TEXTS, "a much longer text than these " * 9, *TEXTS[::-1]])
    assert np.allclose(among[[0, -1]], alone, atol=1e-5)


async def test_what_is_behind_the_models_length_changes_nothing(minilm: MiniLmEmbedder) -> None:
    long = await minilm.embed_documents(["tea " * 300, "tea " * 300 + "volcano " * 50, "tea " * 200 + "volcano " * 40])
    assert np.allclose(long[0], long[1], atol=1e-5)


async def test_any_text_has_a_vector(minilm: MiniLmEmbedder) -> None:
    vectors = await minilm.embed_documents(["", "\ud800 half a pair", "乌龙茶", "\x00"])
    assert np.isfinite(vectors).all()
    assert (await minilm.embed_documents([])).shape == (0, minilm.dimensions)


async def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.safetensors: the model's weights cannot be read"):
        await MiniLmEmbedder(tmp_path).embed_queries(["tea"])


async def test_weights_that_are_cut_off_are_told(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{}")
    with pytest.raises(ModelError, match="cannot be read"):
        await MiniLmEmbedder(tmp_path).embed_queries(["tea"])


RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 39, 40, 200])
@pytest.mark.parametrize(("outputs", "inputs"), [(1152, 384), (384, 1536), (128, 8), (7, 3)])
def test_the_products_are_those_of_the_floats(rows: int, outputs: int, inputs: int) -> None:
    weights, bias, given = normal(outputs, inputs), normal(outputs), normal(rows, inputs)
    # An output's weights are rounded by up to half a share of its largest, here 4 or so, in either direction.
    off = 6 * 4 / 32_767 / 12**0.5 * inputs**0.5
    assert np.allclose(LinearLayer(weights, bias)(given), given @ weights.T + bias, rtol=0, atol=off)


def test_an_output_of_small_weights_is_as_exact_as_one_of_large() -> None:
    weights, given = normal(4, 64) * np.array([[1], [1e-3], [1e-6], [0]], np.float32), normal(5, 64)
    products = LinearLayer(weights, np.zeros(4, np.float32))(given)
    assert np.allclose(products[:, :3] / (given @ weights.T)[:, :3], 1, atol=2e-2)
    assert not products[:, 3].any()


OFFSET, SHAPE = 24, (50, 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(bytes(OFFSET) + np.arange(SHAPE[0] * SHAPE[1], dtype=np.float32).tobytes())
    return path


def mapped(path: Path) -> np.memmap:
    return np.memmap(path, np.float32, "r", OFFSET, SHAPE)


@pytest.mark.parametrize("numbers", [[[3, 0, 3], [49, 7, 0]], [[5]], [[]]])
def test_rows_are_those_of_the_map_in_any_order_and_number(path: Path, numbers: list[list[int]]) -> None:
    wanted = np.array(numbers, dtype=np.int64)
    assert np.array_equal(RowsOnDisk(mapped(path))[wanted], mapped(path)[wanted])


def test_a_file_that_has_become_shorter_is_told(path: Path) -> None:
    rows = RowsOnDisk(mapped(path))
    path.write_bytes(path.read_bytes()[: OFFSET + 40])
    with pytest.raises(ModelError, match=r"weights: ends before its last row of 50"):
        rows[np.array([[0, 1]])]


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
