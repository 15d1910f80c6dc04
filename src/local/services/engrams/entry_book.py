"""The facts and notes of a memory's store as a list that its owner edits by hand."""

from __future__ import annotations

from collections.abc import Sequence

from local.services.engrams import hand_edits
from local.services.engrams.hand_edits import EditOutcome, HandEdit, KeptEntry
from local.services.engrams.store import EngramStore
from local.services.engrams.vector_indexer import VectorIndexer


class EntryBook:
    """Each change returns after its commit. Raises `StoreFailed` and `StoreFull`."""

    def __init__(self, store: EngramStore, indexer: VectorIndexer) -> None:
        self._store, self._indexer = store, indexer

    async def entries(self, user_id: str) -> list[KeptEntry]:
        """A user's facts that hold, then the notes that do."""
        return await self._store.read(lambda db: hand_edits.entries(db, user_id))

    async def compare(self, user_id: str, edits: Sequence[HandEdit]) -> list[EditOutcome]:
        """The outcomes that edits would have."""
        return await self._store.read(lambda db: hand_edits.compare(db, user_id, edits))

    async def apply(self, user_id: str, edits: Sequence[HandEdit], import_id: str, now: float) -> list[EditOutcome]:
        """The outcomes that edits have had, all or none of them. `now` is in seconds since 1970."""
        outcomes = await self._store.write(lambda db: hand_edits.apply(db, user_id, edits, import_id, now))
        self._indexer.wake()
        return outcomes
