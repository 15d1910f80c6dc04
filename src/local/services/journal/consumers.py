"""Durable consumers in SQL: what each has acknowledged and what it still needs. In the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from local.errors import NotOnRecord
from local.services.journal.entry import ConsumerState, Deaths
from local.services.journal.schema import put, rows
from local.services.journal.state import read_state, write_state


def subject_clause(subjects: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """SQL for "any of these subjects or families", and its parameters; without subjects it is true."""
    clauses, parameters = [], []
    for subject in subjects:
        if subject.endswith("."):
            clauses.append("subject >= ? AND subject < ?")
            parameters += [subject, subject[:-1] + "/"]  # "/" comes right after "."
        else:
            clauses.append("subject = ?")
            parameters.append(subject)
    return f"({' OR '.join(clauses) or '1'})", tuple(parameters)


def register(db: sqlite3.Connection, name: str, subjects: Sequence[str], floor: int) -> ConsumerState:
    """Register a consumer that needs what comes above `floor`; one that is known keeps its floor.

    After damage to the consumers' rows a name that is unknown may be one that was lost: it gets everything.
    """
    state = read_state(db)
    known = _find(db, name)
    if known is None and state.consumers_in_doubt:
        floor = 0
    if known is None or known.subjects != tuple(subjects):
        _put(db, name, subjects, known.floor if known else floor)
        write_state(db, state.changed())
    return consumer(db, name)


def forget(db: sqlite3.Connection, name: str) -> None:
    """Remove a consumer: nothing is kept for it any longer."""
    consumer(db, name)
    db.execute("DELETE FROM consumers WHERE name = ?", (name,))
    db.execute("DELETE FROM deliveries WHERE consumer = ?", (name,))
    write_state(db, read_state(db).changed())


def consumer(db: sqlite3.Connection, name: str) -> ConsumerState:
    """Raises `NotOnRecord` for a name that was never registered."""
    found = _find(db, name)
    if found is None:
        raise NotOnRecord(f"journal: no durable consumer {name!a} is registered")
    acknowledged = set()
    for _, number, is_acknowledged, total, alone, reason in rows(db, "deliveries", "consumer = ?", (name,)):
        if is_acknowledged:
            acknowledged.add(number)
        if reason is not None:
            found.parked[number] = reason
        if total:
            found.deaths[number] = Deaths(total, alone)
    return ConsumerState(name, found.subjects, found.floor, frozenset(acknowledged), found.deaths, found.parked)


def consumer_names(db: sqlite3.Connection) -> list[str]:
    """All that are registered."""
    return sorted(name for name, *_ in rows(db, "consumers"))


def acknowledge(db: sqlite3.Connection, name: str, numbers: Iterable[int]) -> None:
    """Settle what a consumer has dealt with. A number not yet given out is no message, and nothing to settle."""
    known = consumer(db, name)
    last = read_state(db).last_number
    for number in numbers:
        if known.floor < number <= last:
            deaths, reason = known.deaths.get(number, Deaths(0, 0)), known.parked.get(number)
            put(db, "deliveries", (name, number, 1, *deaths, reason))
    _raise_floor(db, known)


def note_deaths(db: sqlite3.Connection, name: str, deaths: Mapping[int, Deaths]) -> None:
    """Remember how often messages were in hand when the consumer's process died; totals, not increments."""
    known = consumer(db, name)
    for number, (total, alone) in deaths.items():
        is_acknowledged = int(number in known.acknowledged)
        put(db, "deliveries", (name, number, is_acknowledged, total, alone, known.parked.get(number)))


def park(db: sqlite3.Connection, name: str, number: int, reason: str) -> None:
    """Settle a message that cannot be handled."""
    known = consumer(db, name)
    deaths = known.deaths.get(number, Deaths(0, 0))
    put(db, "deliveries", (name, number, int(number in known.acknowledged), *deaths, reason))
    write_state(db, read_state(db).changed())
    _raise_floor(db, known)


def first_needed(db: sqlite3.Connection, known: ConsumerState) -> int:
    """The lowest number that a consumer still needs; one above the last when it needs none."""
    clause, subjects = subject_clause(known.subjects)
    found = db.execute(
        f"SELECT number FROM entries WHERE number > ? AND {clause} AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE"
        " d.consumer = ? AND d.number = entries.number AND (d.acknowledged OR d.parked IS NOT NULL))"
        " ORDER BY number LIMIT 1",
        (known.floor, *subjects, known.name),
    ).fetchone()
    return int(found[0]) if found else read_state(db).last_number + 1


def _raise_floor(db: sqlite3.Connection, known: ConsumerState) -> None:
    floor = first_needed(db, known) - 1
    if floor > known.floor:
        _put(db, known.name, known.subjects, floor)
        db.execute("DELETE FROM deliveries WHERE consumer = ? AND number <= ? AND parked IS NULL", (known.name, floor))


def _find(db: sqlite3.Connection, name: str) -> ConsumerState | None:
    for _, subjects, floor in rows(db, "consumers", "name = ?", (name,)):
        return ConsumerState(name, tuple(json.loads(subjects)), floor)
    return None


def _put(db: sqlite3.Connection, name: str, subjects: Sequence[str], floor: int) -> None:
    put(db, "consumers", (name, json.dumps(list(subjects)), floor))
