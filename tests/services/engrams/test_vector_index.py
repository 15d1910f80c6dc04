"""Every vector index finds the closest, knows its keys, and takes the same vector twice."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local.core.errors import IndexBroken
from local.memory.chroma_index import ChromaIndex
from local.memory.vectors import ExactIndex, VectorEntry, VectorIndex


@pytest.fixture(params=["exact", "chroma"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    made: VectorIndex = ExactIndex() if request.param == "exact" else ChromaIndex(tmp_path / "index")
    yield made
    made.close()


def entries(count: int, seed: int = 1) -> tuple[list[VectorEntry], Any]:
    vectors = np.random.default_rng(seed).normal(size=(count, 48)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stored = vectors.astype(np.float16)
    return [VectorEntry(f"key{seed}-{number}", "ann", row.tobytes()) for number, row in enumerate(stored)], vectors


def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    _, vectors = entries(1)
    assert (index.search(vectors[0], 5), index.keys()) == ([], set())


def test_the_closest_are_found_closest_first_whenever_they_came(index: VectorIndex) -> None:
    for seed in (1, 2, 3):
        index.add(entries(300, seed)[0])
    _, vectors = entries(300, 2)
    for number in (0, 7, 299):
        assert index.search(vectors[number], 3)[0] == f"key2-{number}"
    every = np.concatenate([entries(300, seed)[1] for seed in (1, 2, 3)])
    cosines = {f"key{1 + at // 300}-{at % 300}": float(row @ vectors[7]) for at, row in enumerate(every)}
    found = [cosines[key] for key in index.search(vectors[7], 10)]
    assert found == sorted(found, reverse=True)
    assert len(set(index.search(vectors[7], 10))) == 10


def test_fewer_than_wanted_are_all_of_them(index: VectorIndex) -> None:
    made, vectors = entries(3)
    index.add(made)
    assert sorted(index.search(vectors[0], 60)) == ["key1-0", "key1-1", "key1-2"]


def test_the_same_vector_again_changes_nothing(index: VectorIndex) -> None:
    made, vectors = entries(3)
    for _ in range(3):
        index.add(made)
    index.add([])
    assert len(index.search(vectors[0], 60)) == 3
    assert index.keys() == {"key1-0", "key1-1", "key1-2"}


def test_the_exact_index_has_what_the_arithmetic_says() -> None:
    index = ExactIndex()
    made, vectors = entries(1000)
    for start in range(0, 1000, 32):
        index.add(made[start : start + 32])
    expected = np.argsort(-(vectors.astype(np.float16).astype(np.float32) @ vectors[5]))[:20]
    assert index.search(vectors[5], 20) == [f"key1-{number}" for number in expected]


@pytest.mark.parametrize(
    "damage",
    [lambda path: (path / "chroma.sqlite3").write_bytes(b"not what it was"), lambda path: (path / "opening").touch()],
)
def test_files_that_are_broken_or_that_killed_the_process_are_not_used(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    index = ChromaIndex(tmp_path)
    index.add(entries(3)[0])
    index.close()
    damage(tmp_path)
    with pytest.raises(IndexBroken):
        ChromaIndex(tmp_path)


def test_chroma_leaves_no_reports_reads_no_settings_of_a_directory_and_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("ALLOW_RESET=true\nIS_PERSISTENT=false\n")
    monkeypatch.chdir(tmp_path)
    index = ChromaIndex(tmp_path / "index")
    settings = index._client.get_settings()
    assert (settings.anonymized_telemetry, settings.allow_reset, settings.is_persistent) == (False, False, True)
    assert (tmp_path / "index").stat().st_mode & 0o077 == 0
    index.close()
