"""What was deleted leaves the record: payloads, and the large fields that lie outside them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from local.bus.blobs import BlobStore, references
from local.bus.reject_log import RejectLog
from local.errors import MalformedFrame
from local.journal.store.entry import Stored
from local.journal.store.store import JournalStore
from local.protocol.envelope import MARK, decode
from local.protocol.journal_messages import JournalRedact
from local.protocol.subjects import MEMORY_DELETED, SESSION_DELETED

PAGE = 20
NOTICES = (MEMORY_DELETED, SESSION_DELETED)  # which say what is deleted, perhaps to somebody who has not heard it yet
YOUNG_SECONDS = 60.0  # what refers to a large field is on record by then, or was never to be


class JournalRedaction:
    """The redaction of one journal. Without a blob store or samples of rejected frames there are none to clear up."""

    def __init__(self, store: JournalStore, blobs: BlobStore | None, rejects: RejectLog | None) -> None:
        self._store, self._blobs, self._rejects = store, blobs, rejects

    async def carry_out(self, request: JournalRedact) -> int:
        """Remove the payloads asked for; returns how many. Can be repeated when it has failed. Raises `StoreFailed`."""
        count, large = 0, set[str]()
        if request.session_id is not None:
            large |= await self._large_fields(session_id=request.session_id)
            count += await self._store.redact_session(request.session_id)
        if request.query_id is not None:
            large |= await self._large_fields(correlation_id=request.query_id)
            count += await self._store.redact_query(request.query_id)
        if request.mentioned is not None:
            count += await self._redact_mentions(request.mentioned, large)
        await self._remove_unused(large)
        if self._rejects is not None:
            self._rejects.clear()  # nobody can tell whose words are in the samples
        return count

    async def sweep(self, age_seconds: float) -> None:
        """Remove the large fields that nothing on record refers to: of what was never kept, or is not any more.

        Those younger than `age_seconds` are left: what refers to them may be on its way. Raises `StoreFailed`.
        """
        if self._blobs is not None:
            await self._remove_unused(await asyncio.to_thread(self._blobs.older_than, age_seconds))

    async def size_of_large_fields(self) -> int:
        """The bytes on the disk of large fields."""
        return 0 if self._blobs is None else await asyncio.to_thread(self._blobs.size)

    async def _redact_mentions(self, text: str, large: set[str]) -> int:
        """Also of those that mention it in a large field."""
        holders = set() if self._blobs is None else await asyncio.to_thread(self._blobs.mentioning, text)
        large |= holders
        count = 0
        for sought in (text, *holders):
            async with aclosing(self._store.mentioning(sought)) as pages:
                async for page in pages:
                    large |= _references(page)
                    ids = [one.entry.envelope_id for one in page if one.entry.subject not in NOTICES]
                    count += await self._store.redact_envelopes(ids)
        return count

    async def _large_fields(self, *, session_id: str | None = None, correlation_id: str | None = None) -> set[str]:
        names: set[str] = set()
        after = 0
        while page := await self._store.read(
            limit=PAGE, after=after, session_id=session_id, correlation_id=correlation_id
        ):
            names |= _references(page)
            after = page[-1].number
        return names

    async def _remove_unused(self, names: set[str]) -> None:
        if self._blobs is None or not names:
            return
        async with aclosing(self._store.mentioning(MARK)) as pages:
            async for page in pages:
                names -= _references(page)
        for name in names:
            await asyncio.to_thread(self._blobs.remove, name)


def size_of_references(frame: bytes) -> int:
    """The bytes of the large fields that a frame refers to; none for one whose payload is gone."""
    try:
        return sum(references(decode(frame).payload).values())
    except MalformedFrame:
        return 0


def _references(page: list[Stored]) -> set[str]:
    return {name for one in page if not one.redacted for name in references(decode(one.entry.frame).payload)}
