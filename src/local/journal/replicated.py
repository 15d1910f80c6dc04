"""The journal's store over a log that other machines keep, too.

The problem. A journal in one file is as safe as its machine. Another machine must be able to continue it: with every
message that was confirmed, under its number, while the machine that was believed dead may still be working.

The idea. A change counts when it is in the log (`log.py`), where it is appended behind the last record that this
process knows. Only then it is carried out in the SQLite file, which is a cache: unsynced, with the position that it has
reached, and made again from the log where it is missing, behind or damaged. The same changes in the same order make the
same journal, so all copies have the same numbers and digest.

Invariants.
- Who takes over appends a record of its own first. An earlier owner is behind from then on: its next append is refused
  (`StoreFenced`), and nothing of it is confirmed any more.
- A record whose append or carrying out was interrupted is in doubt. It is finished, with the same bytes and at the same
  position, before any other change begins, so that a lost answer makes nothing twice.
- A change that the journal would refuse is refused before it is appended: a record can always be carried out.
- A cell's owner (`run/cell.py`) takes over under its id. A journal that has that id starts only while the last owner in
  the log has it: one that was replaced is not to take the log back.
- A file is only filled from a log that continues it, or if it is empty. A journal that a log does not contain is never
  overwritten; an empty log begins with the journal that is there.

Acknowledgements alone are not worth a record: they are carried out at once, and travel with the next one. A takeover
in between costs one more delivery.

Not done. The high-water mark is not advanced: the position says what is missing. Damaged files are not salvaged: the
log has all of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from local.core.database import UNWRITABLE_SECONDS, OpeningLog
from local.core.errors import LocalError, StoreFailed, StoreFenced, StoreInDoubt, StoreUnwritable
from local.journal.delivery import ConsumerChanges
from local.journal.log import CommitLog, Rows, TableRows, Takeover, pack, unpack
from local.journal.recovery import salvage, set_aside
from local.journal.schema import COLUMNS, Appended, Entry, read_state, rows
from local.journal.store import (
    FULL_CHECK_BYTES,
    Change,
    Commit,
    Forgetting,
    JournalStore,
    Redaction,
    Removable,
    Removal,
    registration,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

NEW_CHANGES = 1  # of a journal that was just created
MOST_TAKEOVERS = 10  # tries, when others append in between
REPLAYED = 64  # records carried out in one transaction
PAGE = 64  # entries read at once
RECORD_BYTES = 512 * 1024  # of the rows in one record
Record = tuple[int, bytes]  # with its position

_CREATE = (
    "CREATE TABLE IF NOT EXISTS replica (id INTEGER PRIMARY KEY, position INTEGER NOT NULL, record BLOB NOT NULL,"
    " owner TEXT NOT NULL DEFAULT '', redaction INTEGER NOT NULL DEFAULT 0)"
)
_PUT = "INSERT OR REPLACE INTO replica VALUES (1, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a cell's log, by its id. It takes over with the `progress` of consumers, if that is set back;
    without `takes_over` it only continues.
    """

    name: str
    takes_over: bool = False
    progress: Mapping[str, Rows] = field(default_factory=lambda: {"consumers": (), "deliveries": ()})


class ReplicatedJournalStore(JournalStore):
    """A journal's store whose changes are in a log before they are in the file. Opening it takes the log over and
    brings the file up to date; it waits while the log is not available.

    Every coroutine returns when its change is in the log and in the file. Besides the errors of `JournalStore`, raises
    `StoreUnwritable` while the log is not available, `StoreInDoubt` if it then may contain the change nevertheless, and
    `StoreFenced` when another process has taken it over.
    """

    _has_log = True

    def __init__(
        self,
        path: Path,
        log: CommitLog,
        *,
        owner: Owner | None = None,
        keep: Callable[[Sequence[Entry]], Awaitable[object]] | None = None,
        clock: Callable[[], float] = time.time,
        full_check_bytes: int | None = FULL_CHECK_BYTES,
    ) -> None:
        """`keep` stores elsewhere the files that entries refer to; they are not committed before it returns."""
        super().__init__(path, clock=clock, full_check_bytes=full_check_bytes)
        self._log, self._owner, self._keep = log, owner, keep
        self._connected = AsyncExitStack()
        self._changing = asyncio.Lock()
        self._position = 0
        self._in_doubt: tuple[Change[Any], bytes] | None = None
        self._unlogged: Mapping[str, ConsumerChanges] = {}  # acknowledgements that wait for the next record
        self._names = set[str]()  # consumers that are known to be registered

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            last = await patiently(lambda: stack.enter_async_context(self._log.open()))
            self._mend = set_aside if last else salvage
            await super().__aenter__()
            stack.push_async_exit(super().__aexit__)
            await self._database.run(lambda db: db.execute(_CREATE))
            if await self._database.run(_is_apart):
                if last:
                    raise self._not_a_copy()
                await self._begin_log()
            await patiently(self._take_over)
            self._connected = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._unlogged and self._in_doubt is None:
            with suppress(LocalError):  # then a takeover delivers some messages once more
                await self._record(Commit(self._clock(), (), self._unlogged))
        await self._connected.aclose()

    # Changes

    async def _commit(self, commit: Commit) -> list[Appended]:
        async with self._changing:
            await self._finish()
            for name in commit.changes.keys() - self._names:
                await self._require(name)
            if commit.is_to_last:
                if self._keep is not None:
                    await self._keep(commit.entries)
                both, self._unlogged = _joined(self._unlogged, commit.changes), {}
                return await self._record(replace(commit, changes=both))
            appended = await self._database.run_unsynced(commit.apply)
            self._unlogged = _joined(self._unlogged, commit.changes)
            return appended

    async def _make(self, change: Change[T]) -> T:
        async with self._changing:
            await self._finish()
            if isinstance(change, Forgetting):
                await self._require(change.name)
                self._names.discard(change.name)
                self._unlogged = {name: each for name, each in self._unlogged.items() if name != change.name}
            return await self._record(change)

    async def _remove(self, find: Callable[[sqlite3.Connection], Removable]) -> Removable:
        async with self._changing:
            await self._finish()
            found = await self._database.run(find)
            if found.entries:
                await self._record(Removal(found.up_to))
            return found

    async def _require(self, name: str) -> None:
        await self._database.run(lambda db: registration(db, name))
        self._names.add(name)

    async def _record(self, change: Change[T]) -> T:
        """Append a change and carry it out. Nothing may be in doubt."""
        self._in_doubt = change, pack(change)
        try:
            result: T = await self._finish()
        except StoreUnwritable as error:
            raise StoreInDoubt(str(error)) from error
        return result

    async def _finish(self) -> Any:
        """Append and carry out the change that is in doubt, if there is one."""
        if self._in_doubt is None:
            return None
        change, record = self._in_doubt
        position = await self._log.append(record, self._position)
        run = self._database.run_unsynced if isinstance(change, Commit) else self._database.run
        result = await run(lambda db: self._carry_out(db, [(position, record)], change))
        self._position, self._in_doubt = position, None
        return result

    def _carry_out(self, db: sqlite3.Connection, records: Sequence[Record], change: Change[Any] | None = None) -> Any:
        """Carry out records, but those that the file contains; returns the result of the last. `change` is that of a
        single one, if it need not be read from it.
        """
        known = replica(db) or Replica(0, b"", "", 0)
        result = None
        for at, record in records:
            if at > known.position:
                made = change or unpack(record)
                result = self._apply(db, made)
                owner = made.owner if isinstance(made, Takeover) else known.owner
                redaction = at if isinstance(made, Redaction) else known.redaction
                known = Replica(at, _digest(record), owner, redaction)
                db.execute(_PUT, known)
        return result

    def _keep_mark(self, db: sqlite3.Connection) -> None:
        """The position in the file says what the file lacks."""

    # Taking over

    async def _take_over(self) -> None:
        for _ in range(MOST_TAKEOVERS):
            await self._catch_up()
            await self._require_owner()
            owner = self._owner or Owner(uuid.uuid4().hex)
            with suppress(StoreFenced):  # by the last record of the owner before, or by another that takes over
                await self._record(Takeover(owner.name, **owner.progress))
                return
        raise StoreFenced(f"{self._path}: other processes take over the journal's log at the same time")

    async def _require_owner(self) -> None:
        """Raise `StoreFenced` in a journal that continues after another cell's owner."""
        known = await self._database.run(replica)
        if self._owner is not None and not self._owner.takes_over and known and known.owner != self._owner.name:
            raise StoreFenced(f"{self._path}: another machine runs this cell now")

    async def _catch_up(self) -> None:
        """Carry out all records that the file lacks."""
        self._in_doubt = None
        known = await self._database.run(replica)
        self._position, digest = known[:2] if known else (0, b"")
        is_copy = known is None
        count = 0
        async for batch in _batches(self._log.read(max(0, self._position - 1))):
            if not is_copy:
                (_, record), *batch = batch
                if _digest(record) != digest:
                    break
                is_copy = True
            if batch:
                await self._database.run(partial(self._carry_out, records=batch))
                self._position, count = batch[-1][0], count + len(batch)
        if not is_copy:
            raise self._not_a_copy()
        if await self._database.run(_is_unfinished):
            raise StoreFailed(
                f"{self._path}: the log holds only a part of another machine's journal; delete it, and start on that"
                " machine first"
            )
        if count:
            log.info("%d records were taken from the log", count)
        if self.damage is not None and self._mend is set_aside:
            self.damage = replace(self.damage, salvaged=await self._database.run(_count_entries))

    async def _begin_log(self) -> None:
        """Begin an empty log with the journal that is in the file."""
        log.warning("%s is copied to the log, which is empty", self._path)
        position, record = 0, b""
        async for part in self._parts():
            record = pack(part)
            position = await patiently(partial(self._log.append, record, position))
        await self._database.run(lambda db: db.execute(_PUT, Replica(position, _digest(record), "", 0)))

    async def _parts(self) -> AsyncIterator[TableRows]:
        """Yield the journal in parts of a record each, its state last."""
        after = 0
        while page := await self._database.run(partial(_entries_above, number=after)):
            after = page[-1][0]
            for part in _pieces(page):
                yield TableRows("entries", part)
        for table in [*(COLUMNS.keys() - {"entries", "state"}), "state"]:
            found = await self._database.run(partial(_all_rows, table=table))
            for part in _pieces(found):
                yield TableRows(table, part)

    def _not_a_copy(self) -> StoreFailed:
        return StoreFailed(
            f"{self._path}: this journal is not a copy of the log; move it away to continue with the log's content,"
            " or empty the log to continue with this journal"
        )


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `attempt()`, repeated while the log is not available, which is logged."""
    waiting = OpeningLog()
    while True:
        try:
            return await attempt()
        except StoreUnwritable as error:
            waiting.report(error)
        await asyncio.sleep(UNWRITABLE_SECONDS)


async def _batches(records: AsyncIterator[Record]) -> AsyncIterator[list[Record]]:
    batch: list[Record] = []
    async for each in records:
        batch.append(each)
        if len(batch) == REPLAYED:
            yield batch
            batch = []
    if batch:
        yield batch


def _joined(earlier: Mapping[str, ConsumerChanges], later: Mapping[str, ConsumerChanges]) -> dict[str, ConsumerChanges]:
    nothing = ConsumerChanges()
    names = {**earlier, **later}
    return {name: earlier.get(name, nothing).followed_by(later.get(name, nothing)) for name in names}


class Replica(NamedTuple):
    """The state of a copy of a log: the position that it has reached, the digest of the record there, the last owner,
    and the position of the last redaction.
    """

    position: int
    record: bytes
    owner: str
    redaction: int


def replica(db: sqlite3.Connection) -> Replica | None:
    """Return what the file has of a log; None if it never was a copy of one."""
    row = db.execute("SELECT position, record, owner, redaction FROM replica").fetchone()
    return None if row is None else Replica(*row)


def _is_apart(db: sqlite3.Connection) -> bool:
    """Whether the file is a journal, not an empty one, that was never a copy of a log."""
    return replica(db) is None and _has_content(db)


def _is_unfinished(db: sqlite3.Connection) -> bool:
    """Whether the file has rows but not the state that comes after them."""
    return read_state(db).changes <= NEW_CHANGES and _has_content(db)


def _has_content(db: sqlite3.Connection) -> bool:
    tables = COLUMNS.keys() - {"state"}
    return any(db.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0] for table in tables)


def _entries_above(db: sqlite3.Connection, number: int) -> list[tuple[Any, ...]]:
    return list(rows(db, "entries", f"number > ? ORDER BY number LIMIT {PAGE}", (number,)))


def _all_rows(db: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return list(rows(db, table))


def _count_entries(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT COUNT(*) FROM entries").fetchone()[0])


def _pieces(found: Sequence[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Split rows into pieces that fit into a record each."""
    piece: list[tuple[Any, ...]] = []
    room = RECORD_BYTES
    for row in found:
        size = sum(len(value) if isinstance(value, str | bytes) else 10 for value in row)
        if size > room and piece:
            yield piece
            piece, room = [], RECORD_BYTES
        piece.append(row)
        room -= size
    if piece:
        yield piece


def _digest(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=16).digest()
