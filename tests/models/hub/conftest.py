"""A hub with a small model and a large one in two parts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.models import hub as gguf_download
from local.models.hub import ModelStock
from tests.models.hub.fake_hub import FakeHub, hub_with


def gguf(seed: int, size: int = 300_000) -> bytes:
    return b"GGUF" + random.Random(seed).randbytes(size - 4)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(gguf_download, "CHUNK_BYTES", 10_000)
    files = {
        "README.md": b"hello",
        "tiny-Q8_0.gguf": gguf(1),
        "tiny-Q4_K_M.gguf": gguf(2),
        "mmproj-tiny-Q4_K_M.gguf": gguf(3),
        "big/big-BF16-00001-of-00002.gguf": gguf(4),
        "big/big-BF16-00002-of-00002.gguf": gguf(5),
    }
    with hub_with(files) as hub:
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def stock(hub: FakeHub, folder: Path) -> ModelStock:
    return ModelStock(folder, "http://127.0.0.1:1", hub.url, "hf_secret_of_ours")
