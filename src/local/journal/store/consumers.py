"""Durable consumers in SQL: who is registered, what happens to each, what none needs any more. In the caller's
transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from local.errors import NotOnRecord
from local.journal.core.consumer_state import MAX_FENCED, ConsumerChanges, ConsumerState, Deaths
from local.journal.store.entries import of_subjects
from local.journal.store.schema import put, read_state, rows, write_state

AGAIN = ""  # in the place of the reason: what was a dead letter is to be given again


def register(db: sqlite3.Connection, name: str, subjects: Sequence[str], floor: int) -> ConsumerState:
    """Register a consumer that needs what comes above `floor`; one that is known keeps its floor.

    After damage to the consumers' rows a name that is unknown may be one that was lost: it gets everything.
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
    acknowledged, deaths, dead_letters, again = set[int](), dict[int, Deaths](), dict[int, str](), set[int]()
    for _, number, is_acknowledged, total, alone, reason in rows(db, "deliveries", "consumer = ?", (name,)):
        if is_acknowledged:
            acknowledged.add(number)
        if reason == AGAIN:
            again.add(number)
        elif reason is not None:
            dead_letters[number] = reason
        if total:
            deaths[number] = Deaths(total, alone)
    served_by, fenced = servers(db, name)
    return ConsumerState(
        name, known.subjects, known.floor, frozenset(acknowledged), deaths, dead_letters, again, served_by, fenced
    )


def consumer_names(db: sqlite3.Connection) -> list[str]:
    """All that are registered."""
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


_UNTOUCHED = (0, Deaths(0, 0), None)


def apply(db: sqlite3.Connection, changes: Mapping[str, ConsumerChanges]) -> None:
    """Write what happened to each consumer. Raises `NotOnRecord` for one that is not registered."""
    state = read_state(db)
    for name, change in changes.items():
        _put_deliveries(db, name, change, state.last_number)
        if change.served_by:
            _put_servers(db, name, change.served_by)
    if any(change.is_to_last for change in changes.values()):
        write_state(db, state.changed())  # not for what is settled: losing that means one more delivery


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
    """A number that is not given out yet is no message, and nothing to settle; nor is one below the floor, unless it
    is given again."""
    known = registration(db, name)
    for number in change.again:
        put(db, "deliveries", (name, number, 0, *change.deaths.get(number, Deaths()), AGAIN))
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


def _delivery(db: sqlite3.Connection, name: str, number: int) -> tuple[int, Deaths, str | None]:
    for _, _, acknowledged, total, alone, reason in rows(
        db, "deliveries", "consumer = ? AND number = ?", (name, number)
    ):
        return acknowledged, Deaths(total, alone), reason
    return _UNTOUCHED


def _put_servers(db: sqlite3.Connection, name: str, instances: Sequence[str | None]) -> None:
    current, before = servers(db, name)
    fenced = deque(before, MAX_FENCED)
    for instance in instances:
        if current is not None and current != instance:
            fenced.append(current)
        current = instance
    put(db, "servers", (name, current, json.dumps(list(fenced))))


SLICE = 500  # entries removed in one transaction: appends wait no longer than for that
FREED_PAGES = 1000  # given back to the file system in one transaction, of 4 kB each
_ENTRY_OVERHEAD = 500  # bytes of header columns and indexes


def remove_slice(
    db: sqlite3.Connection, committed_before: float, max_bytes: int, weigh: Callable[[bytes], int]
) -> tuple[int, int]:
    """Remove the oldest entries that are too old or too many, at most `SLICE` of them; returns how many, and how many
    bytes lie elsewhere for them, as `weigh` tells of each frame.

    Always a prefix, up to the first that is needed, so that a number missing in the middle is damage and nothing else.
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
    if removed:
        for condition in (
            "entries WHERE number",
            "gaps WHERE last",
            "tombstones WHERE up_to",
            "deliveries WHERE number",
        ):
            db.execute(f"DELETE FROM {condition} <= ?", (cut,))
        write_state(db, state.changed()._replace(first_number=cut + 1))
    return removed, elsewhere


def give_back_slice(db: sqlite3.Connection) -> bool:
    """Give unused pages at the end of the file back to the file system; returns whether there may be more.

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
