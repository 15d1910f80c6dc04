"""Durable consumers in SQL: who is registered, and what is known of each. In the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence

from local.errors import NotOnRecord
from local.services.journal.entry import ConsumerState, Deaths
from local.services.journal.schema import put, rows
from local.services.journal.state import read_state, write_state


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
    acknowledged = set()
    for _, number, is_acknowledged, total, alone, reason in rows(db, "deliveries", "consumer = ?", (name,)):
        if is_acknowledged:
            acknowledged.add(number)
        if reason is not None:
            known.parked[number] = reason
        if total:
            known.deaths[number] = Deaths(total, alone)
    served_by, fenced = servers(db, name)
    return ConsumerState(
        name, known.subjects, known.floor, frozenset(acknowledged), known.deaths, known.parked, served_by, fenced
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
