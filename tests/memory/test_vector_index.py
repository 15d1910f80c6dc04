"""Every vector index finds the closest, knows its keys, and takes the same vector twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local.core.errors import IndexBroken
from local.memory import vectors as vectors_module
from local.memory.chroma_index import ChromaIndex
from local.memory.vectors import InMemoryIndex, VectorEntry, VectorIndex


def entries(count: int, seed: int = 1) -> tuple[list[VectorEntry], Any]:
    vectors = np.random.default_rng(seed).normal(size=(count, 48)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stored = vectors.astype(np.float16)
    return [VectorEntry(f"key{seed}-{number}", "ann", row.tobytes()) for number, row in enumerate(stored)], vectors


@pytest.mark.parametrize("kind", ["memory", "chroma"])
def test_the_closest_are_found_closest_first_whenever_they_came_and_however_often(tmp_path: Path, kind: str) -> None:
    index: VectorIndex = InMemoryIndex() if kind == "memory" else ChromaIndex(tmp_path / "index")
    made, vectors = entries(3)
    assert (index.search(vectors[0], 5), index.keys()) == ([], set())
    for _ in range(2):
        index.add(made)
    assert sorted(index.search(vectors[0], 60)) == ["key1-0", "key1-1", "key1-2"]
    for seed in (2, 3):
        index.add(entries(300, seed)[0])
    every = np.concatenate([vectors, *(entries(300, seed)[1] for seed in (2, 3))])
    asked = entries(300, 2)[1][7]
    expected = np.argsort(-(every.astype(np.float16).astype(np.float32) @ asked))[:10]
    keys = [f"key1-{at}" if at < 3 else f"key{2 + (at - 3) // 300}-{(at - 3) % 300}" for at in expected]
    found = index.search(asked, 10)
    assert found[0] == keys[0] == "key2-7" and len(set(found)) == 10
    assert found == keys if kind == "memory" else len(set(found) & set(keys)) >= 8
    index.close()


def test_the_closest_of_very_many_are_found_without_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "_COMPARED", 50)
    index = InMemoryIndex()
    index.add(entries(2_000)[0])
    (asked,), away = entries(1, seed=5)[1], entries(10, seed=6)[1]
    close = asked + np.arange(10, dtype=np.float32)[:, None] / 20 * away
    close /= np.linalg.norm(close, axis=1, keepdims=True)
    index.add([VectorEntry(f"close{step}", "ann", row.tobytes()) for step, row in enumerate(close.astype(np.float16))])
    assert index.search(asked, 10) == [f"close{step}" for step in range(10)]


def test_chroma_is_private_leaves_no_reports_and_refuses_files_that_are_broken_or_killed_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("ALLOW_RESET=true\nIS_PERSISTENT=false\n")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "index"
    index = ChromaIndex(folder)
    settings = index._client.get_settings()
    assert (settings.anonymized_telemetry, settings.allow_reset, settings.is_persistent) == (False, False, True)
    assert folder.stat().st_mode & 0o077 == 0
    index.close()
    (folder / "opening").touch()  # as a process leaves it that has died while it opened the index
    with pytest.raises(IndexBroken):
        ChromaIndex(folder)
    (folder / "opening").unlink()
    (folder / "chroma.sqlite3").write_bytes(b"not what it was")
    with pytest.raises(IndexBroken):
        ChromaIndex(folder)
