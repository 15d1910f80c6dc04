"""Keeps the vector index in step with SQLite, in the background: embeds what is new, fills, repairs and rebuilds."""

from __future__ import annotations

import asyncio
import logging
import shutil
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from local.errors import IndexBroken, LocalError, ModelError, StoreFailed
from local.services.embeddings.embedder import Embedder
from local.services.engrams import vectors
from local.services.engrams.chroma_index import ChromaIndex
from local.services.engrams.store import EngramStore

log = logging.getLogger(__name__)
_BATCH = 32
RETRY_SECONDS = 30.0


class IndexerState(StrEnum):
    """What dense search can rely on."""

    STARTING = "starting"  # nothing is open yet
    EMPTY = "empty"  # there is nothing to be found, and no index
    BUILDING = "building"  # being filled; words alone are searched
    READY = "ready"
    FAILED = "failed"  # tried again after `RETRY_SECONDS`, or when there is something new


class VectorIndexer:
    """The one that writes vectors. `run` is its life; `wake` tells it that there may be work, which begins when the
    coroutine `moment` returns."""

    def __init__(self, store: EngramStore, directory: Path) -> None:
        self._store, self._directory = store, directory
        self.embedder: Embedder | None = None
        self.moment: Callable[[], Awaitable[object]] = _now
        self._chosen = asyncio.Event()
        self._index: ChromaIndex | None = None
        self._work, self._settled = asyncio.Event(), asyncio.Event()
        self._work.set()
        self.state = IndexerState.STARTING
        self.trouble = ""
        self._is_broken = False

    def use(self, embedder: Embedder) -> None:
        """Embed with this model from now on, once and for all."""
        self.embedder = embedder
        self._chosen.set()

    def wake(self) -> None:
        """There is something to embed or to clean up."""
        if self.state is IndexerState.EMPTY:
            self.state = IndexerState.BUILDING
        self._settled.clear()
        self._work.set()

    async def settled(self) -> None:
        """Wait until everything stored is embedded and indexed, and nothing deleted is left."""
        await self._settled.wait()

    async def search(self, user_id: str, vector: Any, limit: int) -> list[str]:
        """Keys of a user's closest vectors. Raises `IndexBroken` while there is no complete index."""
        if self.state is IndexerState.EMPTY:
            return []
        index = self._index
        if index is None or self.state is not IndexerState.READY:
            raise IndexBroken(self.trouble or "the index of meanings is not ready yet")
        try:
            return await asyncio.to_thread(index.search, user_id, vector, limit)
        except IndexBroken as error:
            if index is not self._index:  # it was replaced in the meantime
                return await self.search(user_id, vector, limit)
            self._fail(error)
            self.wake()
            raise

    async def run(self) -> None:
        """Work until cancelled. Failures are told in `trouble` and tried again."""
        await self._chosen.wait()
        try:
            while True:
                self._work.clear()
                seconds = None
                try:
                    await self._keep()
                except (IndexBroken, ModelError, StoreFailed) as error:
                    self._fail(error)
                    seconds = RETRY_SECONDS
                self._store.changed.set()  # as its state may have
                await self._wait_for_work(seconds)
                await self.moment()
        finally:
            await self._close()

    async def _keep(self) -> None:
        if self._is_broken:
            await self._close()
        if await self._store.read(vectors.is_any_wanted):
            await self._keep_index()
            self.state = IndexerState.READY
        else:
            self.state = IndexerState.EMPTY
            await self._remove_index()
        self.trouble = ""
        if not self._work.is_set():
            self._settled.set()

    async def _keep_index(self) -> None:
        if self._index is None:
            await self._open()
        state = await self._store.read(vectors.state)
        if state.has_remains:
            await self._rebuild(state.deletions)
        while await self._embed_some() == _BATCH:
            pass

    async def _remove_index(self) -> None:
        """An index of nothing would be in the way: opening one costs a second, and a hundred megabytes."""
        await self._close()
        state = await self._store.read(vectors.state)
        if state.generation or state.has_remains:
            await self._store.write(lambda db: vectors.use_generation(db, "", state.deletions))
        self._is_broken = False
        await asyncio.to_thread(self._remove_others, "")

    async def _open(self) -> None:
        """Open the index that SQLite names and bring it up to date, or build a new one."""
        assert self.embedder is not None, "nothing is kept before it was chosen"
        name = self.embedder.name
        await self._store.write(lambda db: vectors.use_model(db, name))
        state = await self._store.read(vectors.state)
        await asyncio.to_thread(self._remove_others, state.generation)
        path = self._directory / state.generation
        self.state = IndexerState.BUILDING
        if self._is_broken or state.is_opening or not state.generation or not path.is_dir():
            await self._rebuild(state.deletions)
            return
        await self._store.write(lambda db: vectors.note_opening(db, 1))
        try:
            index, found = await asyncio.to_thread(_opened, path)
        except IndexBroken as error:
            log.warning("%s", error)
            await self._rebuild(state.deletions)
            return
        self._index = index
        await self._store.write(lambda db: vectors.note_opening(db, 0))
        known = await self._store.read(vectors.keys)
        await self._fill(index, known & found)
        if found - known:
            await self._rebuild(state.deletions)

    async def _rebuild(self, deletions: int) -> None:
        """Build a new index; the old one answers until it is complete, and then goes with all that is in its files."""
        generation = uuid.uuid4().hex
        index = await asyncio.to_thread(ChromaIndex, self._directory / generation)
        try:
            await self._fill(index, set())
            await self._store.write(lambda db: vectors.use_generation(db, generation, deletions))
        except BaseException:
            await asyncio.to_thread(index.close)
            raise
        old, self._index, self._is_broken = self._index, index, False
        await _close(old)
        await asyncio.to_thread(self._remove_others, generation)

    async def _fill(self, index: ChromaIndex, present: set[str]) -> None:
        page, last = await self._store.read(partial(vectors.page, after=0))
        while page:
            missing = [entry for entry in page if entry.key not in present]
            if missing:
                await asyncio.to_thread(index.add, missing)
            page, last = await self._store.read(partial(vectors.page, after=last))

    async def _embed_some(self) -> int:
        """Embed some of what is pending; returns how much that was."""
        texts = await self._store.read(lambda db: vectors.pending(db, _BATCH))
        if texts:
            made = await self._embedded(texts)
            entries = await self._store.write(lambda db: vectors.put(db, texts, made))
            assert self._index is not None, "it was opened before"
            await asyncio.to_thread(self._index.add, entries)
        return len(texts)

    async def _embedded(self, texts: Sequence[vectors.Pending]) -> vectors.Vectors:
        import numpy as np

        assert self.embedder is not None, "nothing is kept before it was chosen"
        followers = [number for number, text in enumerate(texts) if text.context]
        made = await self.embedder.embed_documents(
            [*(text.text for text in texts), *(texts[number].context for number in followers)]
        )
        contexts = np.zeros((len(texts), self.embedder.dimensions), np.float32)
        contexts[followers] = made[len(texts) :]
        return vectors.in_context(made[: len(texts)], contexts)

    async def _wait_for_work(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            log.info("the vector index is tried again")

    def _fail(self, error: LocalError) -> None:
        log.warning("%s; words alone are searched until it works again", error)
        self.state, self.trouble = IndexerState.FAILED, str(error)
        self._is_broken = self._is_broken or isinstance(error, IndexBroken)

    async def _close(self) -> None:
        index, self._index = self._index, None
        await _close(index)

    def _remove_others(self, generation: str) -> None:
        for path in self._directory.glob("*"):
            if path.name != generation:
                shutil.rmtree(path, ignore_errors=True)


async def _now() -> None:
    """The moment for work is at once."""


def _opened(path: Path) -> tuple[ChromaIndex, set[str]]:
    """An index and the keys that are in it."""
    index = ChromaIndex(path)
    try:
        return index, index.keys()
    except IndexBroken:
        with suppress(IndexBroken):
            index.close()
        raise


async def _close(index: ChromaIndex | None) -> None:
    if index is not None:
        try:
            await asyncio.to_thread(index.close)
        except IndexBroken as error:
            log.info("%s", error)  # it is given up in any case
