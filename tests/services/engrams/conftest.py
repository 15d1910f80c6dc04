"""A small embedding model that knows a few words of one meaning, and services on it."""

import asyncio
import itertools
import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local.memory.service import EngramService
from local.memory.store import EngramDraft

MEANINGS = {"espresso": "coffee", "beverage": "tea", "automobile": "car", "reside": "live"}
NOW = 1_700_000_000.0
PATIENCE = 30.0


class WordEmbedder:
    """Texts with the same words are close, and so are those with words of `MEANINGS`."""

    dimensions = 1024
    relevance_floor = 0.2

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.texts: list[str] = []
        self.error: Exception | None = None
        self.failed = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def embed_queries(self, texts: Sequence[str]) -> Any:
        if self.error:
            self.failed.set()
            raise self.error
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        await self.may_go_on.wait()
        self.texts += texts
        return await self.embed_queries(texts)

    def _vector(self, text: str) -> Any:
        vector = np.full(self.dimensions, 1e-3)
        for word in re.findall(r"\w+", text.casefold()):
            if len(word) > 3:
                vector[zlib.crc32(MEANINGS.get(word, word).encode()) % self.dimensions] += 1
        return vector / np.linalg.norm(vector)


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "engrams"


@pytest.fixture
def holders(directory: Path, files_with: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Tells which files below the directory hold one of some texts."""
    return partial(files_with, directory)


@pytest.fixture
def opened(directory: Path, embedder: WordEmbedder) -> Callable[..., Any]:
    """Opens a service, by default with `embedder` and a clock that stands still."""

    @asynccontextmanager
    async def open_service(other: WordEmbedder | None = None) -> AsyncIterator[EngramService]:
        async with asyncio.timeout(PATIENCE), EngramService(directory, other or embedder, clock=lambda: NOW) as service:
            yield service

    return open_service


@pytest.fixture
async def service(opened: Callable[..., Any]) -> AsyncIterator[EngramService]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(opened())


@pytest.fixture
def exported() -> Callable[..., Any]:
    """Everything that is exported of a user, page after page."""

    async def export(service: EngramService, user_id: str) -> list[dict[str, Any]]:
        found, cursor = await service.export(user_id)
        while cursor:
            page, cursor = await service.export(user_id, cursor)
            found += page
        return [json.loads(line) for line in found]

    return export


@pytest.fixture
def exchange() -> Callable[..., EngramDraft]:
    """Makes exchanges, each in a session of its own unless one is named."""
    return exchanges()


def exchanges() -> Callable[..., EngramDraft]:
    numbers = itertools.count()

    def make(query: str, answer: str = "Noted.", **fields: Any) -> EngramDraft:
        number = next(numbers)
        told = {"query_id": f"query-{number}", "session_id": f"session-{number}", "user_id": "ann",
                "asked_at": NOW - 1000 + number} | fields  # fmt: skip
        return EngramDraft(query=query, answer=answer, **told)

    return make
