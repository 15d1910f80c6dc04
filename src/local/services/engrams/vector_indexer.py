"""Keeps the meanings of what is stored, in the background: embeds what is new, and has the indexes follow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from local.errors import IndexBroken, ModelError, StoreFailed
from local.services.embeddings.embedder import Embedder
from local.services.engrams import vectors
from local.services.engrams.store import EngramStore
from local.services.engrams.user_indexes import UserIndexes

log = logging.getLogger(__name__)
_BATCH = 32
RETRY_SECONDS = 30.0
NOT_READY = "the index of meanings is not ready yet"
NOTHING_YET = "nothing is embedded yet, so nothing is found by its meaning"


class IndexerState(StrEnum):
    """What dense search can rely on."""

    STARTING = "starting"  # nothing is open yet
    EMPTY = "empty"  # there is nothing to be found
    BUILDING = "building"  # not everything is embedded yet
    READY = "ready"
    FAILED = "failed"  # tried again after `RETRY_SECONDS`, or when there is something new


class VectorIndexer:
    """The one that writes vectors. `run` is its life; `wake` tells it that there may be work, which begins when the
    coroutine `moment` returns."""

    def __init__(self, store: EngramStore, directory: Path) -> None:
        self._store = store
        self._indexes = UserIndexes(store, directory)
        self.embedder: Embedder | None = None
        self.moment: Callable[[], Awaitable[object]] = _now
        self._chosen = asyncio.Event()
        self._work, self._settled = asyncio.Event(), asyncio.Event()
        self._work.set()
        self.state = IndexerState.STARTING
        self.trouble = ""
        self._has_begun = False
        self._latest: dict[str, Any] = {}  # vectors by text: what was just said is what the next one follows
        self._has_deleted = True  # whoever ran before may have left something in the files of a large index

    def use(self, embedder: Embedder) -> None:
        """Embed with this model from now on, once and for all."""
        self.embedder = embedder
        self._chosen.set()

    def wake(self, *, has_deleted: bool = False) -> None:
        """There is something to embed, or to clean up."""
        self._has_deleted |= has_deleted
        if has_deleted:
            self._latest = {}
        if self.state is IndexerState.EMPTY:
            self.state = IndexerState.BUILDING
        self._settled.clear()
        self._work.set()

    async def settled(self) -> None:
        """Wait until everything stored is embedded and indexed, and nothing deleted is left."""
        await self._settled.wait()

    async def search(self, user_id: str, vector: Any, limit: int) -> list[str]:
        """Keys of a user's closest vectors, of those that are there already. Raises `IndexBroken` where none can be
        compared."""
        if self.state in (IndexerState.STARTING, IndexerState.FAILED):
            raise IndexBroken(self.trouble or NOT_READY)
        had_outgrown = self._indexes.has_outgrown
        found = await self._indexes.search(user_id, vector, limit)
        if self._indexes.has_outgrown and not had_outgrown:  # it was opened for this search
            self.wake()
        return found

    async def run(self) -> None:
        """Work until cancelled. Failures are told in `trouble` and tried again."""
        await self._chosen.wait()
        try:
            while True:
                self._work.clear()
                seconds = None
                try:
                    await self._keep()
                except IndexBroken as error:  # every vector is compared instead
                    log.warning("%s", error)
                    self.state, self.trouble, seconds = IndexerState.READY, str(error), RETRY_SECONDS
                except (ModelError, StoreFailed) as error:
                    log.warning("%s; words alone are searched until it works again", error)
                    self.state, self.trouble, seconds = IndexerState.FAILED, str(error), RETRY_SECONDS
                self._store.changed.set()  # as its state may have
                await self._wait_for_work(seconds)
                await self.moment()
        finally:
            await self._indexes.close()

    async def _keep(self) -> None:
        if await self._store.read(vectors.is_any_wanted):
            await self._begin()
            while await self._embed_some() == _BATCH:
                pass
            await self._keep_indexes()
            self.state = IndexerState.READY
        else:
            await self._keep_indexes()
            self.state = IndexerState.BUILDING if self._work.is_set() else IndexerState.EMPTY
        self.trouble = ""
        if not self._work.is_set():
            self._settled.set()

    async def _begin(self) -> None:
        """What another model has made is of no use."""
        if not self._has_begun:
            assert self.embedder is not None, "nothing is kept before it was chosen"
            name = self.embedder.name
            await self._store.write(lambda db: vectors.use_model(db, name))
            self._has_begun, self.state = True, IndexerState.BUILDING

    async def _keep_indexes(self) -> None:
        if self._has_deleted or self._indexes.has_outgrown:
            self._has_deleted = False
            try:
                await self._indexes.keep()
            except BaseException:
                self._has_deleted = True
                raise

    async def _embed_some(self) -> int:
        """Embed some of what is pending; returns how much that was."""
        texts = await self._store.read(lambda db: vectors.pending(db, _BATCH))
        if texts:
            made = await self._embedded(texts)
            entries = await self._store.write(lambda db: vectors.put(db, texts, made))
            await self._indexes.add(entries)
        return len(texts)

    async def _embedded(self, texts: Sequence[vectors.Pending]) -> vectors.Vectors:
        import numpy as np

        assert self.embedder is not None, "nothing is kept before it was chosen"
        said = (text for each in texts for text in (each.text, each.context) if text)
        wanted: dict[str, Any] = {text: self._latest.get(text) for text in said}
        if new := [text for text, vector in wanted.items() if vector is None]:
            wanted |= zip(new, await self.embedder.embed_documents(new), strict=True)
        self._latest = wanted
        nothing = np.zeros(self.embedder.dimensions, np.float32)
        contexts = np.stack([wanted.get(text.context, nothing) for text in texts])
        return vectors.in_context(np.stack([wanted[text.text] for text in texts]), contexts)

    async def _wait_for_work(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            log.info("the vector index is tried again")


async def _now() -> None:
    """The moment for work is at once."""
