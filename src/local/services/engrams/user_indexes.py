"""A vector index for each user: exact ones, made when they are first asked, and Chroma's for who has very much."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from local.errors import IndexBroken
from local.services.engrams import vectors
from local.services.engrams.exact_index import ExactIndex
from local.services.engrams.store import EngramStore
from local.services.engrams.vector_index import VectorIndex
from local.services.engrams.vectors import VectorEntry

log = logging.getLogger(__name__)
EXACT_AT_MOST = 20_000  # engrams of a user: 30 MB, and the time of a question's embedding is not yet doubled


class UserIndexes:
    """Whoever asks gets an answer at once: what is large is opened, built and renewed in the background, by `keep`, and
    an exact one answers meanwhile."""

    def __init__(self, store: EngramStore, directory: Path) -> None:
        self._store, self._directory = store, directory
        self._open: dict[str, VectorIndex] = {}
        self._changing = asyncio.Lock()

    async def search(self, user_id: str, vector: Any, limit: int) -> list[str]:
        """The keys of a user's closest vectors, closest first."""
        index = self._open.get(user_id) or await self._loaded(user_id)
        try:
            return await asyncio.to_thread(index.search, vector, limit)
        except IndexBroken as error:
            await self._give_up(user_id, index, error)
            return await self.search(user_id, vector, limit)

    async def add(self, entries: Iterable[VectorEntry]) -> None:
        """What is new in SQLite."""
        by_user: defaultdict[str, list[VectorEntry]] = defaultdict(list)
        for entry in entries:
            by_user[entry.user_id].append(entry)
        for user_id, theirs in by_user.items():
            async with self._changing:
                index = self._open.get(user_id)
                if index is None:
                    continue
                try:
                    await asyncio.to_thread(index.add, theirs)
                    continue
                except IndexBroken as error:
                    broken = error
            await self._give_up(user_id, index, broken)

    @property
    def has_outgrown(self) -> bool:
        """Whether an exact index has become too large."""
        return any(isinstance(each, ExactIndex) and len(each) > EXACT_AT_MOST for each in self._open.values())

    async def keep(self) -> None:
        """Bring the large ones up to date, leave nothing of what was deleted in any file, and remove what is too much.

        Nothing may be added meanwhile. Raises `IndexBroken` where Chroma cannot even begin.
        """
        large = await self._store.read(lambda db: vectors.users_with_more(db, EXACT_AT_MOST))
        for user_id in large:
            await self._keep_large(user_id)
        await self._forget_others(large)

    async def close(self) -> None:
        """Let go of all of them."""
        indexes, self._open = list(self._open.values()), {}
        for index in indexes:
            await _close(index)

    async def _loaded(self, user_id: str) -> VectorIndex:
        async with self._changing:
            if user_id not in self._open:
                made = ExactIndex()
                await self._fill(made, user_id, ())
                self._open[user_id] = made
            return self._open[user_id]

    async def _keep_large(self, user_id: str) -> None:
        index = self._open.get(user_id)
        if index is None or isinstance(index, ExactIndex):
            index = await self._opened(user_id)
        known = await self._store.read(lambda db: vectors.keys(db, user_id))
        found = set() if index is None else await asyncio.to_thread(index.keys)
        if index is None or found - known:  # what is deleted in Chroma stays in its files
            path = self._directory / f"{_name(user_id)}.{uuid.uuid4().hex}"
            index, found = await asyncio.to_thread(_chroma, path), set()
        if known - found:
            await self._fill(index, user_id, found)
        await self._use(user_id, index)

    async def _opened(self, user_id: str) -> VectorIndex | None:
        """The one on disk, if there is one in good order."""
        paths = list(self._directory.glob(f"{_name(user_id)}.*"))
        if len(paths) != 1:
            return None
        try:
            return await asyncio.to_thread(_chroma, paths[0])
        except IndexBroken as error:
            log.warning("%s", error)
            return None

    async def _fill(self, index: VectorIndex, user_id: str, present: Collection[str]) -> None:
        last = 0
        while True:
            page, last = await self._store.read(lambda db, after=last: vectors.page(db, user_id, after))  # type: ignore[misc]
            if not page:
                return
            await asyncio.to_thread(index.add, [entry for entry in page if entry.key not in present])

    async def _use(self, user_id: str, index: VectorIndex) -> None:
        old = self._open.get(user_id)
        self._open[user_id] = index
        if old is not None and old is not index:
            await _close(old)

    async def _forget_others(self, large: Sequence[str]) -> None:
        """The exact ones are made anew without what is deleted, when they are asked again."""
        for user_id in self._open.keys() - set(large):
            await _close(self._open.pop(user_id))
        in_use = {getattr(index, "directory", None) for index in self._open.values()}
        await asyncio.to_thread(_remove, [path for path in self._directory.glob("*") if path not in in_use])

    async def _give_up(self, user_id: str, index: VectorIndex, error: IndexBroken) -> None:
        """None is loaded, and so none made anew, before the files of this one are gone."""
        async with self._changing:
            if self._open.get(user_id) is not index:  # it was replaced in the meantime
                return
            log.warning("%s; every vector is compared until then", error)
            del self._open[user_id]
            await _close(index)
            await asyncio.to_thread(_remove, self._directory.glob(f"{_name(user_id)}.*"))


def _chroma(path: Path) -> VectorIndex:
    from local.services.engrams.chroma_index import ChromaIndex  # a hundred megabytes, for few

    return ChromaIndex(path)


def _name(user_id: str) -> str:
    """The beginning of a directory's name: any user id is possible, and nobody's is read from the files."""
    return hashlib.sha256(user_id.encode(errors="surrogatepass")).hexdigest()[:32]


async def _close(index: VectorIndex) -> None:
    with suppress(IndexBroken):  # it is given up in any case
        await asyncio.to_thread(index.close)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
