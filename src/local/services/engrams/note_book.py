"""The notes in a memory's store, for whoever is served by its process."""

from __future__ import annotations

from local.services.engrams import notes
from local.services.engrams.engram import Engram, Ingested
from local.services.engrams.notes import NoteDraft
from local.services.engrams.store import EngramStore
from local.services.engrams.vector_indexer import VectorIndexer


class NoteBook:
    """Each change returns after its commit. Raises `StoreFailed`, `StoreFull`, and `NotOnRecord` for a note that the
    user does not have."""

    def __init__(self, store: EngramStore, indexer: VectorIndexer) -> None:
        self._store, self._indexer = store, indexer

    async def keep(self, draft: NoteDraft) -> Ingested:
        """Store a note once, or withdraw the one that an empty draft names."""
        ingested = await self._store.write(lambda db: notes.keep(db, draft))
        if ingested is Ingested.NEW:
            self._indexer.wake()
        return ingested

    async def current(self, user_id: str) -> list[Engram]:
        """A user's notes that hold, the latest first."""
        return await self._store.read(lambda db: notes.current(db, user_id))

    async def restore(self, user_id: str, note_id: str) -> None:
        """Have a note hold again that was replaced or withdrawn."""
        await self._store.write(lambda db: notes.restore(db, user_id, note_id))
