"""The journal's store: every message under a number, in one SQLite file with a high-water mark beside it.

Every acknowledgement is on the disk twice: the commit, and then the mark that says how far the commits went. A tail
that went missing, a row or a page that changed, a file that was swapped are found when the store is opened.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol, Self, TypeVar, Unpack

from local.core.database import Database, connect_read_only, naming_damage, open_patiently, store_failure
from local.core.errors import NotOnRecord, StoreDamaged, StoreFailed
from local.journal import schema as entries
from local.journal.delivery import MAX_FENCED, ConsumerChanges, ConsumerState, DeliveryFailures
from local.journal.recovery import DamageReport, find_damage, open_soundly, salvage, suspicion_path
from local.journal.schema import (
    MIGRATIONS,
    Appended,
    Entry,
    Filters,
    Header,
    JournalState,
    Stored,
    of_subjects,
    put,
    read,
    read_state,
    rows,
    where,
    write_state,
)

# Durable consumers in SQL: their registration, the state of each, and entries that none needs any more. In the caller's
# transaction.

log = logging.getLogger(__name__)

AGAIN = ""  # instead of the reason: a former dead letter to be delivered again


def register(db: sqlite3.Connection, name: str, subjects: Sequence[str], floor: int) -> ConsumerState:
    """Register a consumer for the messages above `floor`; a known one keeps its floor.

    After damage to the consumers' rows an unknown name may be a lost one, so it gets everything.
    """
    state = read_state(db)
    known = next(_find(db, name), None)
    if known is None and state.consumers_in_doubt:
        floor = 0
    if known is None or known.subjects != tuple(subjects):
        put_consumer(db, name, subjects, known.floor if known else floor)
        write_state(db, state.changed())
    return consumer(db, name)


def forget(db: sqlite3.Connection, name: str) -> None:
    """Remove a consumer: nothing is kept for it any longer."""
    registration(db, name)
    db.execute("DELETE FROM consumers WHERE name = ?", (name,))
    for table in ("deliveries", "servers"):
        db.execute(f"DELETE FROM {table} WHERE consumer = ?", (name,))
    write_state(db, read_state(db).changed())


def registration(db: sqlite3.Connection, name: str) -> ConsumerState:
    """A consumer's subjects and floor, nothing else. Raises `NotOnRecord` for a name that was never registered."""
    for known in _find(db, name):
        return known
    raise NotOnRecord(f"journal: no durable consumer {name!a} is registered")


def consumer(db: sqlite3.Connection, name: str) -> ConsumerState:
    """Everything that is known of a consumer. Raises `NotOnRecord`."""
    known = registration(db, name)
    acknowledged, deaths, dead_letters, again = set[int](), dict[int, DeliveryFailures](), dict[int, str](), set[int]()
    for _, number, is_acknowledged, total, alone, reason in rows(db, "deliveries", "consumer = ?", (name,)):
        if is_acknowledged:
            acknowledged.add(number)
        if reason == AGAIN:
            again.add(number)
        elif reason is not None:
            dead_letters[number] = reason
        if total:
            deaths[number] = DeliveryFailures(total, alone)
    served_by, fenced = servers(db, name)
    return ConsumerState(
        name, known.subjects, known.floor, frozenset(acknowledged), deaths, dead_letters, again, served_by, fenced
    )


def consumer_names(db: sqlite3.Connection) -> list[str]:
    """Return the names of all registered consumers."""
    return sorted(name for name, *_ in rows(db, "consumers"))


def servers(db: sqlite3.Connection, name: str) -> tuple[str | None, tuple[str, ...]]:
    """The instance that serves a consumer now, and those before it."""
    for _, served_by, fenced in rows(db, "servers", "consumer = ?", (name,)):
        return served_by, tuple(json.loads(fenced))
    return None, ()


def put_consumer(db: sqlite3.Connection, name: str, subjects: Sequence[str], floor: int) -> None:
    """Write a registration, over the one before."""
    put(db, "consumers", (name, json.dumps(list(subjects)), floor))


def _find(db: sqlite3.Connection, name: str) -> Iterator[ConsumerState]:
    for _, subjects, floor in rows(db, "consumers", "name = ?", (name,)):
        yield ConsumerState(name, tuple(json.loads(subjects)), floor)


_UNTOUCHED = (0, DeliveryFailures(0, 0), None)


def apply(db: sqlite3.Connection, changes: Mapping[str, ConsumerChanges]) -> None:
    """Write the changes of each consumer. Raises `NotOnRecord` for one that is not registered."""
    state = read_state(db)
    for name, change in changes.items():
        _put_deliveries(db, name, change, state.last_number)
        if change.served_by:
            _put_servers(db, name, change.served_by)
    if any(change.is_to_last for change in changes.values()):
        write_state(db, state.changed())  # not for settled numbers: losing that means one more delivery


def first_needed(db: sqlite3.Connection, known: ConsumerState, last: int, settled: Collection[int] = ()) -> int:
    """The lowest number above its floor that a consumer still needs; one above the last when it needs none.

    `settled` are numbers that are about to be written as such.
    """
    is_settled = f"SELECT 1 FROM deliveries WHERE consumer = ? AND number = ? AND (acknowledged OR parked != '{AGAIN}')"
    for (number,) in of_subjects(db, "number", known.subjects, known.floor):
        if number not in settled and db.execute(is_settled, (known.name, number)).fetchone() is None:
            return int(number)
    return last + 1


def lowest_needed(db: sqlite3.Connection, name: str, last: int) -> int:
    """The lowest number that has to be kept for a consumer."""
    above = first_needed(db, registration(db, name), last)
    sql = "SELECT MIN(number) FROM deliveries WHERE consumer = ? AND parked = ?"
    (again,) = db.execute(sql, (name, AGAIN)).fetchone()
    return above if again is None else min(above, int(again))


def _put_deliveries(db: sqlite3.Connection, name: str, change: ConsumerChanges, last: int) -> None:
    """Store changes of deliveries. A number that is not assigned yet is not a message, so it is not stored; nor is one
    below the floor, unless it is delivered again.
    """
    known = registration(db, name)
    for number in change.again:
        put(db, "deliveries", (name, number, 0, *change.deaths.get(number, DeliveryFailures()), AGAIN))
    done = change.settled | change.dead_letters.keys()
    settled = {number for number in done if known.floor < number <= last}
    floor = first_needed(db, known, last, settled) - 1 if settled else known.floor
    if floor > known.floor:
        put_consumer(db, name, known.subjects, floor)
        is_done = "number <= ? AND (parked IS NULL OR parked = ? AND number > ?)"
        db.execute(f"DELETE FROM deliveries WHERE consumer = ? AND {is_done}", (name, floor, AGAIN, known.floor))
    for number in done | change.deaths.keys():
        is_dead = number in settled and number in change.dead_letters
        if floor < number <= last or is_dead or (number <= known.floor and _is_again(db, name, number)):
            _put_delivery(db, name, number, change)


def _is_again(db: sqlite3.Connection, name: str, number: int) -> bool:
    return _delivery(db, name, number)[-1] == AGAIN


def _put_delivery(db: sqlite3.Connection, name: str, number: int, change: ConsumerChanges) -> None:
    acknowledged, deaths, reason = _delivery(db, name, number)
    is_settled = number in change.settled
    reason = change.dead_letters.get(number, None if is_settled else reason)
    put(
        db,
        "deliveries",
        (name, number, int(acknowledged or is_settled), *change.deaths.get(number, deaths), reason),
    )


def _delivery(db: sqlite3.Connection, name: str, number: int) -> tuple[int, DeliveryFailures, str | None]:
    for _, _, acknowledged, total, alone, reason in rows(
        db, "deliveries", "consumer = ? AND number = ?", (name, number)
    ):
        return acknowledged, DeliveryFailures(total, alone), reason
    return _UNTOUCHED


def _put_servers(db: sqlite3.Connection, name: str, instances: Sequence[str | None]) -> None:
    current, before = servers(db, name)
    fenced = deque(before, MAX_FENCED)
    for instance in instances:
        if current is not None and current != instance:
            fenced.append(current)
        current = instance
    put(db, "servers", (name, current, json.dumps(list(fenced))))


PROGRESS = ("consumers", "deliveries")  # tables


def set_progress(db: sqlite3.Connection, progress: Mapping[str, Sequence[Sequence[object]]]) -> None:
    """Set consumers back to an earlier progress, rows of each table in `PROGRESS`; others stay as they are."""
    for name, *_ in progress["consumers"]:
        db.execute("DELETE FROM deliveries WHERE consumer = ?", (name,))
    for table in PROGRESS:
        for row in progress[table]:
            put(db, table, tuple(row))


SLICE = 500  # entries removed in one transaction: appends wait no longer than for that
FREED_PAGES = 1000  # given back to the file system in one transaction, of 4 kB each
_ENTRY_OVERHEAD = 500  # bytes of header columns and indexes


class Removable(NamedTuple):
    """The oldest entries that can be removed: how many, the number of the last, and the bytes stored elsewhere for
    them.
    """

    entries: int
    up_to: int
    elsewhere: int


def find_removable(
    db: sqlite3.Connection, committed_before: float, max_bytes: int, weigh: Callable[[bytes], int]
) -> Removable:
    """Find the oldest entries that are too old or too many, at most `SLICE` of them; `weigh` returns the bytes stored
    elsewhere for each frame.

    Always a prefix, up to the first that is needed, so that a number missing in the middle is always damage.
    """
    state = read_state(db)
    last = state.last_number
    needed = min((lowest_needed(db, name, last) for name in consumer_names(db)), default=last + 1)
    used = _used_bytes(db)
    excess: float = used - max_bytes
    average = used / (last - state.first_number + 2)
    removed, cut, elsewhere = 0, 0, 0
    for number, committed_at, frame in db.execute(
        "SELECT number, committed_at, frame FROM entries WHERE number < ? ORDER BY number LIMIT ?",
        (needed, SLICE),
    ):
        if committed_at >= committed_before and excess <= 0:
            break
        removed, cut = removed + 1, number
        beside = weigh(frame)
        elsewhere += beside
        excess -= max(len(frame) + _ENTRY_OVERHEAD, average) + beside  # rather too much: the next slice has the rest
    return Removable(removed, cut, elsewhere)


def remove(db: sqlite3.Connection, up_to: int) -> None:
    """Remove all entries up to a number, and what is on record about them."""
    for condition in ("entries WHERE number", "gaps WHERE last", "tombstones WHERE up_to", "deliveries WHERE number"):
        db.execute(f"DELETE FROM {condition} <= ?", (up_to,))
    write_state(db, read_state(db).changed()._replace(first_number=up_to + 1))


def release_unused_pages(db: sqlite3.Connection) -> bool:
    """Return unused pages at the end of the file to the file system; returns whether there may be more.

    Without effect on a journal that an older program has made: there they are used again.
    """
    (before,) = db.execute("PRAGMA freelist_count").fetchone()
    db.execute(f"PRAGMA incremental_vacuum({FREED_PAGES})").fetchall()
    (after,) = db.execute("PRAGMA freelist_count").fetchone()
    return bool(after and after < before)


def _used_bytes(db: sqlite3.Connection) -> int:
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


# The changes of a journal, as values: what a store carries out, and what a replicated one writes into its log. The same
# changes in the same order always make the same journal.

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Change(Protocol[T_co]):
    """A change of the journal."""

    def apply(self, db: sqlite3.Connection) -> T_co:
        """Carry it out in the caller's transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Commit:
    """Entries and the changes of consumers, committed together at a time in seconds since 1970."""

    at: float
    entries: Sequence[Entry]
    changes: Mapping[str, ConsumerChanges]

    @property
    def is_to_last(self) -> bool:
        """Whether losing it would do harm: more than one more delivery."""
        return bool(self.entries) or any(change.is_to_last for change in self.changes.values())

    def apply(self, db: sqlite3.Connection) -> list[Appended]:
        appended = entries.append(db, self.entries, self.at)
        apply(db, self.changes)
        return appended


@dataclass(frozen=True, slots=True)
class Registration:
    """A durable consumer for the messages above `floor`, None for those from now on."""

    name: str
    subjects: Sequence[str]
    floor: int | None

    def apply(self, db: sqlite3.Connection) -> ConsumerState:
        floor = read_state(db).last_number if self.floor is None else self.floor
        return register(db, self.name, self.subjects, floor)


@dataclass(frozen=True, slots=True)
class Forgetting:
    """The end of a durable consumer."""

    name: str

    def apply(self, db: sqlite3.Connection) -> None:
        forget(db, self.name)


@dataclass(frozen=True, slots=True)
class Redaction:
    """The removal of payloads: of sessions, queries or envelopes, as `kind` says."""

    kind: str
    identifiers: Sequence[str]

    def apply(self, db: sqlite3.Connection) -> int:
        return sum(entries.redact(db, self.kind, each) for each in self.identifiers)


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of all entries up to a number."""

    up_to: int

    def apply(self, db: sqlite3.Connection) -> None:
        remove(db, self.up_to)


FULL_CHECK_BYTES = 16 * 1024 * 1024  # a third of a second
NO_CHANGES: Mapping[str, ConsumerChanges] = MappingProxyType({})


def _weightless(frame: bytes) -> int:
    """Return 0, for a journal without large fields."""
    return 0


class JournalStore:
    """The journal's SQLite file with its high-water mark. Use as `async with`; one process has it open. Every
    coroutine returns after its commit.

    Opening waits for disk space and for a writable file. If the file is damaged it is moved aside, and its sound
    content continues in a new file; `damage` then describes what happened. Of a file above `full_check_bytes` only the
    end is checked: call `verify` later; after `suspect` the next opening checks all of it. Raises `StoreFailed`;
    `StoreUnwritable` for failures that pass; `StoreDamaged` for a row that has changed since the check; `NotOnRecord`
    for an unknown consumer.
    """

    _has_log = False

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, full_check_bytes: int | None = FULL_CHECK_BYTES
    ) -> None:
        self._path, self._clock = path, clock
        self._suspicion = suspicion_path(path)
        self._full_check_bytes = full_check_bytes
        self._stack = AsyncExitStack()
        self._reading = asyncio.Lock()  # a reader of the file keeps the WAL from being emptied
        self._empties_wal = self._wal_is_read = False
        self._mend: Callable[[Path, str], DamageReport] = salvage
        self.damage: DamageReport | None = None

    async def __aenter__(self) -> Self:
        self._mark, self.damage = await open_patiently(
            partial(open_soundly, self._path, self._full_check_bytes, self._mend)
        )
        async with AsyncExitStack() as stack:
            stack.enter_context(self._mark)
            self._database = await stack.enter_async_context(Database(self._path, MIGRATIONS, self._committed))
            if not self._has_log:
                await self._database.run(self._leave_log)
            self._stack = stack.pop_all()
        self._suspicion.unlink(missing_ok=True)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def commit(self, new: Sequence[Entry], changes: Mapping[str, ConsumerChanges] = NO_CHANGES) -> list[Appended]:
        """Number and store entries, and the changes of consumers, by name, in one commit.

        An entry whose envelope id is known keeps its number. Raises `NotOnRecord` for an unknown consumer.
        """
        return await self._commit(Commit(self._clock(), new, changes))

    async def read(self, *, limit: int, **filters: Unpack[Filters]) -> list[Stored]:
        """At most `limit` entries, in order, that match everything given."""
        sql, parameters = where(filters, limit)
        return await self._database.run(lambda db: list(entries.read(db, sql, parameters)))

    async def recovery(self, subjects: Sequence[str], after: int, limit: int) -> list[Header]:
        """Return at most `limit` entries with higher numbers than `after`, in order, which a consumer of these subjects
        may need. Quick, because checksums stay unverified; the frame is read, and verified, when it is delivered.
        """

        def work(db: sqlite3.Connection) -> list[Header]:
            found = of_subjects(db, ", ".join(Header._fields), subjects, after)
            return [Header(*row) for row in islice(found, limit)]

        return await self._database.run(work)

    async def state(self) -> JournalState:
        """Return the journal's extent: first and last number, number of changes."""
        return await self._database.run(read_state)

    async def register(self, name: str, subjects: Sequence[str], *, floor: int | None = None) -> ConsumerState:
        """Register a durable consumer for the messages above `floor`: 0 is from the beginning, None from now on.

        A known one keeps its floor and gets these subjects.
        """
        return await self._make(Registration(name, subjects, floor))

    async def forget(self, name: str) -> None:
        """Remove a durable consumer with its unacknowledged messages."""
        await self._make(Forgetting(name))

    async def consumer(self, name: str) -> ConsumerState:
        """Return the stored state of a durable consumer."""
        return await self._database.run(lambda db: consumer(db, name))

    async def consumer_names(self) -> list[str]:
        """All durable consumers."""
        return await self._database.run(consumer_names)

    async def dead_letters(self) -> list[DeadLetterRecord]:
        """Return every dead letter of any consumer, in order."""
        return await self._database.run(_dead_letters)

    async def redact_session(self, session_id: str) -> int:
        """Remove the payloads of a session from the file permanently, headers stay; returns how many there were."""
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
        """Remove the oldest entries that are older, or that exceed the limit on the file's used part and the
        `elsewhere` bytes beside it, of which `weigh` returns those of a frame. Return the space to the file system;
        returns how many were removed.

        Stops at the first entry that a registered consumer has neither acknowledged nor given up.
        """
        oldest = self._clock() - max_age_seconds
        removed = 0
        left = elsewhere
        while True:
            find = partial(find_removable, committed_before=oldest, max_bytes=max_bytes - left, weigh=weigh)
            found = await self._remove(find)
            if not found.entries:
                break
            removed, left = removed + found.entries, max(0, left - found.elsewhere)
        while removed and await self._database.run(release_unused_pages):
            pass
        return removed

    def suspect(self) -> None:
        """Mark the file as suspect: the next opening checks all of it."""
        self._suspicion.touch()

    async def verify(self) -> str | None:
        """Check the whole file while the journal works; returns a description of the damage, None if it is sound."""
        async with self._reading:
            return await asyncio.to_thread(find_damage, self._path, self._mark.state, in_full=True)

    async def _redact(self, kind: str, identifiers: Sequence[str]) -> int:
        async with self._reading:
            count = await self._make(Redaction(kind, identifiers))
            if self._wal_is_read:
                raise StoreFailed(
                    f"{self._path}: redacted, but another program reads the file and keeps the old WAL;"
                    " redact once more when it has ended"
                )
            return count

    async def _commit(self, commit: Commit) -> list[Appended]:
        if commit.is_to_last:
            return await self._database.run_short(commit.apply)
        return await self._database.run_unsynced(commit.apply)

    async def _make(self, change: Change[T]) -> T:
        """Carry out a change; returns when it lasts."""
        return await self._database.run(partial(self._apply, change=change))

    async def _remove(self, find: Callable[[sqlite3.Connection], Removable]) -> Removable:
        """Remove what `find` returns."""

        def work(db: sqlite3.Connection) -> Removable:
            found = find(db)
            if found.entries:
                remove(db, found.up_to)
            return found

        return await self._database.run(work)

    def _apply(self, db: sqlite3.Connection, change: Change[T]) -> T:
        self._empties_wal = self._empties_wal or isinstance(change, Redaction)
        return change.apply(db)

    def _leave_log(self, db: sqlite3.Connection) -> None:
        """A copy of a log becomes a journal of its own, of which that log knows nothing from now on."""
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'replica'").fetchone():
            log.warning("%s was a copy of a log; it continues on this machine alone", self._path)
            db.execute("DROP TABLE replica")

    def _committed(self, db: sqlite3.Connection) -> None:
        self._keep_mark(db)
        if self._empties_wal:
            self._empties_wal = False
            self._wal_is_read = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])

    def _keep_mark(self, db: sqlite3.Connection) -> None:
        state = read_state(db)
        if state != self._mark.state:
            if not self._mark.has_its_name():
                self._database.check_name()  # or the folder was exchanged in the middle of the commit
                self._mark.make_anew()
            self._mark.advance(state)


# A look at the journal from outside, whether its owner runs or not. Reads only.

LAST_CHARACTER = "\U0010ffff"
VIEW_SLICE = 100  # entries read at once: of up to 1 MiB each


class SessionSpan(NamedTuple):
    """A session's entries: how many, and the time of commit of the first and the last, in seconds since 1970."""

    session_id: str
    messages: int
    first_at: float
    last_at: float


class DeadLetterRecord(NamedTuple):
    """A dead letter: a message that a consumer does not receive any more, and the reason. Times are seconds since
    1970.
    """

    number: int
    committed_at: float
    consumer: str
    subject: str
    query_id: str
    reason: str


def _dead_letters(db: sqlite3.Connection) -> list[DeadLetterRecord]:
    sql = (
        "SELECT d.number, e.committed_at, d.consumer, e.subject, e.correlation_id, d.parked FROM deliveries d"
        " JOIN entries e ON e.number = d.number WHERE d.parked != '' ORDER BY d.number, d.consumer"
    )
    return [DeadLetterRecord(*row) for row in db.execute(sql).fetchall()]


class JournalStats(NamedTuple):
    """The size of a journal. Without entries the numbers are 0. `size` is in bytes, the WAL included."""

    entries: int
    first_number: int
    last_number: int
    size: int


class JournalView:
    """A journal opened by another process, for reading only. Use as `with`. Between two calls it holds no lock that
    could keep the owner from emptying its WAL.

    Raises `NotOnRecord` where there is no journal; `StoreDamaged` for damage, with the number of the entry and what to
    do; `StoreFailed` for other failures to read, a newer schema included.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if not self._path.exists():
            raise NotOnRecord(
                f"{self._path}: there is no journal; the first start of a system on this data directory creates it"
            )
        with ExitStack() as stack, self._reporting():
            self._db = stack.enter_context(connect_read_only(self._path))
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > len(MIGRATIONS):
                raise StoreFailed(f"{self._path}: schema version {version} is newer than this program")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def read(self, *, limit: int, **filters: Unpack[Filters]) -> list[Stored]:
        """At most `limit` entries, in order, that match everything given."""
        sql, parameters = where(filters, limit)
        with self._reporting():
            return list(read(self._db, sql, parameters))

    def read_all(self, **filters: Unpack[Filters]) -> Iterator[Stored]:
        """Yield all matching entries, a slice at a time, up to those that exist when the last slice is read."""
        found = self.read(limit=VIEW_SLICE, **filters)
        while found:
            yield from found
            filters["after"] = found[-1].number
            found = self.read(limit=VIEW_SLICE, **filters)

    def sessions(self) -> list[SessionSpan]:
        """Every session, the one that began first before the others."""
        with self._reporting():
            return [
                SessionSpan(*row)
                for row in self._db.execute(
                    "SELECT s.session_id, s.messages, first.committed_at, last.committed_at FROM (SELECT session_id,"
                    " COUNT(*) messages, MIN(number) low, MAX(number) high FROM entries WHERE session_id IS NOT NULL"
                    " GROUP BY session_id) s JOIN entries first ON first.number = s.low"
                    " JOIN entries last ON last.number = s.high ORDER BY s.low"
                ).fetchall()
            ]

    def ids(self, beginning: str, *, most: int) -> list[str]:
        """At most so many of the ids of sessions and queries that begin like this, in order."""
        found: set[str] = set()
        with self._reporting():
            for column in ("session_id", "correlation_id"):
                sql = f"SELECT DISTINCT {column} FROM entries WHERE {column} >= ? AND {column} < ? ORDER BY 1 LIMIT ?"
                found |= {row[0] for row in self._db.execute(sql, (beginning, beginning + LAST_CHARACTER, most))}
        return sorted(found)[:most]

    def dead_letters(self) -> list[DeadLetterRecord]:
        """Return every dead letter of any consumer, in order; not those that are too old to be kept."""
        with self._reporting():
            return _dead_letters(self._db)

    def count(self) -> JournalStats:
        """Return the statistics of the journal."""
        with self._reporting():
            sql = "SELECT COUNT(*), COALESCE(MIN(number), 0), COALESCE(MAX(number), 0) FROM entries"
            entries, first, last = self._db.execute(sql).fetchone()
            files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
            return JournalStats(entries, first, last, sum(file.stat().st_size for file in files if file.exists()))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            with naming_damage():
                yield
        except StoreDamaged as error:
            what = "stop the system and start it again: sound messages are kept, lost ones are reported"
            raise StoreDamaged(f"{self._path}: {error}; {what}") from None
        except (sqlite3.Error, OSError) as error:
            raise store_failure(self._path, error) from None
