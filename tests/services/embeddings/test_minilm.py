"""The bundled embedding model gives what sentence-transformers gives, in any batch, and says what it lacks."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from local.core.errors import ModelError
from local.memory.embeddings import MiniLmEmbedder, _gelu

TEXTS = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder()


async def test_similarities_are_those_of_the_reference_implementation(embedder: MiniLmEmbedder) -> None:
    """As published with the model: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2"""
    vectors = await embedder.embed_documents(TEXTS)
    assert vectors.shape == (4, embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(vectors[0] @ vectors[1:].T, [0.695, 0.943, 0.257], atol=2e-3)


async def test_a_text_has_the_same_vector_alone_and_among_longer_ones(embedder: MiniLmEmbedder) -> None:
    alone = await embedder.embed_queries([TEXTS[0]])
    among = await embedder.embed_documents([*TEXTS, "a much longer text than these " * 9, *TEXTS[::-1]])
    assert np.allclose(among[[0, -1]], alone, atol=1e-5)


async def test_what_is_behind_the_models_length_changes_nothing(embedder: MiniLmEmbedder) -> None:
    long = await embedder.embed_documents(
        ["tea " * 300, "tea " * 300 + "volcano " * 50, "tea " * 200 + "volcano " * 40]
    )
    assert np.allclose(long[0], long[1], atol=1e-5)
    assert not np.allclose(long[0], long[2], atol=1e-2)


async def test_any_text_has_a_vector(embedder: MiniLmEmbedder) -> None:
    vectors = await embedder.embed_documents(["", "\ud800 half a pair", "乌龙茶", "\x00"])
    assert np.isfinite(vectors).all()
    assert (await embedder.embed_documents([])).shape == (0, embedder.dimensions)


async def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.safetensors: the model's weights cannot be read"):
        await MiniLmEmbedder(tmp_path).embed_queries(["tea"])


async def test_weights_that_are_cut_off_are_told(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{}")
    with pytest.raises(ModelError, match="cannot be read"):
        await MiniLmEmbedder(tmp_path).embed_queries(["tea"])


def test_it_computes_in_one_thread_also_where_it_is_the_first_to_load_numpy() -> None:
    look = """
import sys
from local.memory.embeddings import MiniLmEmbedder
assert "numpy" not in sys.modules
MiniLmEmbedder()._embed_batch(["tea"])
import threadpoolctl
print([each["num_threads"] for each in threadpoolctl.threadpool_info()])
"""
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[1]\n"


def test_the_activation_is_exact_enough() -> None:
    from math import erf

    inputs = np.linspace(-6, 6, 101, dtype=np.float32)
    exact = [value * 0.5 * (1 + erf(value / 2**0.5)) for value in inputs]
    assert np.allclose(_gelu(inputs.copy()), exact, atol=2e-6)
