"""The journal's store: every message under a number, in one SQLite file with a high-water mark beside it.

What was acknowledged is on the disk twice over: the commit, and then the mark that says how far the commits went. A
tail that went missing, a row or a page that changed, a file that was swapped are found when the store is opened.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Self, Unpack

from local.errors import StoreFailed
from local.journal.core.consumer_state import ConsumerChanges, ConsumerState
from local.journal.store import consumers, entries
from local.journal.store.consumers import apply, give_back_slice, remove_slice
from local.journal.store.damage import find_damage
from local.journal.store.entries import Filters, of_subjects, where
from local.journal.store.entry import Appended, Entry, Header, Stored
from local.journal.store.recovery import DamageReport, open_soundly
from local.journal.store.schema import MIGRATIONS, JournalState, read_state
from local.journal.store.situation import suspicion_path
from local.services.database import Database
from local.services.sqlite_file import open_patiently

FULL_CHECK_BYTES = 16 * 1024 * 1024  # a third of a second
SLICE = 500  # entries looked through in one transaction
NO_CHANGES: Mapping[str, ConsumerChanges] = MappingProxyType({})


def _weightless(frame: bytes) -> int:
    """Of one beside which nothing lies."""
    return 0


class JournalStore:
    """Use as `async with`; one process has it open. Every coroutine returns after its commit.

    Opening waits for room, and for a file that can be written. Where it finds damage the broken file is moved aside,
    and what is sound in it goes on in a fresh one; `damage` then says what happened. A file above `full_check_bytes` is
    checked at its end only: `verify` it at leisure; after `suspect` it is checked in full when it is opened the next
    time. Raises `StoreFailed`; `StoreUnwritable` for what passes by itself; `StoreDamaged` for a row that has changed
    since the check; `NotOnRecord` for an unknown consumer.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, full_check_bytes: int | None = FULL_CHECK_BYTES
    ) -> None:
        self._path, self._clock = path, clock
        self._suspicion = suspicion_path(path)
        self._full_check_bytes = full_check_bytes
        self._stack = AsyncExitStack()
        self._reading = asyncio.Lock()  # a reader of the file keeps the WAL from being emptied
        self._empties_wal = self._wal_is_read = False
        self.damage: DamageReport | None = None

    async def __aenter__(self) -> Self:
        self._mark, self.damage = await open_patiently(partial(open_soundly, self._path, self._full_check_bytes))
        async with AsyncExitStack() as stack:
            stack.enter_context(self._mark)
            self._database = await stack.enter_async_context(Database(self._path, MIGRATIONS, self._committed))
            self._stack = stack.pop_all()
        self._suspicion.unlink(missing_ok=True)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def commit(self, new: Sequence[Entry], changes: Mapping[str, ConsumerChanges] = NO_CHANGES) -> list[Appended]:
        """Number and store entries, and what happened to consumers, by name, in one commit.

        An entry whose envelope id is known keeps its number. Raises `NotOnRecord` for an unknown consumer.
        """

        def work(db: sqlite3.Connection) -> list[Appended]:
            appended = entries.append(db, new, self._clock())
            apply(db, changes)
            return appended

        if new or any(change.is_to_last for change in changes.values()):
            return await self._database.run_short(work)
        return await self._database.run_unsynced(work)

    async def read(self, *, limit: int, **filters: Unpack[Filters]) -> list[Stored]:
        """At most `limit` entries, in order, that match everything given."""
        sql, parameters = where(filters, limit)
        return await self._database.run(lambda db: list(entries.read(db, sql, parameters)))

    async def recovery(self, subjects: Sequence[str], after: int, limit: int) -> list[Header]:
        """At most `limit` entries with higher numbers than `after`, in order: what a consumer of these subjects may
        need. Quick, because checksums stay unverified; the frame is read, and verified, when it is delivered."""

        def work(db: sqlite3.Connection) -> list[Header]:
            found = of_subjects(db, ", ".join(Header._fields), subjects, after)
            return [Header(*row) for row in islice(found, limit)]

        return await self._database.run(work)

    async def state(self) -> JournalState:
        """How far it has come: first and last number, number of changes."""
        return await self._database.run(read_state)

    async def register(self, name: str, subjects: Sequence[str], *, floor: int | None = None) -> ConsumerState:
        """Register a durable consumer for what comes above `floor`: 0 is from the beginning, None from now on.

        One that is known keeps its floor; its subjects become these.
        """

        def work(db: sqlite3.Connection) -> ConsumerState:
            above = read_state(db).last_number if floor is None else floor
            return consumers.register(db, name, subjects, above)

        return await self._database.run(work)

    async def forget(self, name: str) -> None:
        """Remove a durable consumer, and with it the claim on what it has not acknowledged."""
        await self._database.run(lambda db: consumers.forget(db, name))

    async def consumer(self, name: str) -> ConsumerState:
        """What is known of a durable consumer."""
        return await self._database.run(lambda db: consumers.consumer(db, name))

    async def consumer_names(self) -> list[str]:
        """All durable consumers."""
        return await self._database.run(consumers.consumer_names)

    async def redact_session(self, session_id: str) -> int:
        """Remove the payloads of a session from the file for good, headers stay; returns how many there were."""
        return await self._redact(entries.SESSION, [session_id])

    async def redact_query(self, query_id: str) -> int:
        """Remove the payloads of all that a query has caused, and may cause yet; returns how many there were."""
        return await self._redact(entries.QUERY, [query_id])

    async def mentioning(self, text: str) -> AsyncGenerator[list[Stored], None]:
        """All entries so far with a payload that contains a text. Reads the whole file, a slice in a transaction, so
        that appends do not wait for more than that."""
        after, last = 0, (await self.state()).last_number
        while after < last:
            found = await self._database.run(partial(entries.mentioning, text=text, after=after, up_to=after + SLICE))
            if found:
                yield found
            after += SLICE

    async def redact_envelopes(self, envelope_ids: Sequence[str]) -> int:
        """Remove the payloads of single messages. One that comes only later is stored without its payload."""
        return await self._redact(entries.ENVELOPE, envelope_ids)

    async def retain(
        self, max_age_seconds: float, max_bytes: int, elsewhere: int = 0, weigh: Callable[[bytes], int] = _weightless
    ) -> int:
        """Remove the oldest entries that are older, or that make too much of the file's used part and the `elsewhere`
        bytes that lie beside it, of which `weigh` tells how many are a frame's. Give the space of the file back;
        returns how many.

        Stops at the first entry that a registered consumer has neither acknowledged nor had as a dead letter.
        """
        oldest = self._clock() - max_age_seconds
        removed = 0
        left = elsewhere
        while True:
            remove = partial(remove_slice, committed_before=oldest, max_bytes=max_bytes - left, weigh=weigh)
            count, freed = await self._database.run(remove)
            if not count:
                break
            removed, left = removed + count, max(0, left - freed)
        while removed and await self._database.run(give_back_slice):
            pass
        return removed

    def suspect(self) -> None:
        """Something is wrong with the file: have the next opening look at all of it."""
        self._suspicion.touch()

    async def verify(self) -> str | None:
        """Check all of the file beside the running work: what is wrong with it in words, None when it is sound."""
        async with self._reading:
            return await asyncio.to_thread(find_damage, self._path, self._mark.state, in_full=True)

    async def _redact(self, kind: str, identifiers: Sequence[str]) -> int:
        def work(db: sqlite3.Connection) -> int:
            self._empties_wal = True
            return sum(entries.redact(db, kind, each) for each in identifiers)

        async with self._reading:
            count = await self._database.run(work)
            if self._wal_is_read:
                raise StoreFailed(
                    f"{self._path}: redacted, but another program reads the file and keeps the old WAL;"
                    " redact once more when it has ended"
                )
            return count

    def _committed(self, db: sqlite3.Connection) -> None:
        state = read_state(db)
        if state != self._mark.state:
            if not self._mark.has_its_name():
                self._database.check_name()  # or the folder was exchanged in the middle of the commit
                self._mark.make_anew()
            self._mark.advance(state)
        if self._empties_wal:
            self._empties_wal = False
            self._wal_is_read = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
