"""What happens to durable consumers, in SQL: settled, died, parked, served by another. In the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Collection, Mapping, Sequence

from local.services.journal.consumers import put_consumer, registration, servers
from local.services.journal.entry import ConsumerChanges, ConsumerState, Deaths
from local.services.journal.schema import put, rows
from local.services.journal.state import read_state, write_state
from local.services.journal.subjects import of_subjects

MAX_FENCED = 64
_UNTOUCHED = (0, Deaths(0, 0), None)


def apply(db: sqlite3.Connection, changes: Mapping[str, ConsumerChanges]) -> None:
    """Write what happened to each consumer. Raises `NotOnRecord` for one that is not registered."""
    state = read_state(db)
    for name, change in changes.items():
        _put_deliveries(db, name, change, state.last_number)
        if change.served_by:
            _put_servers(db, name, change.served_by)
    if any(change.deaths or change.parked or change.served_by for change in changes.values()):
        write_state(db, state.changed())  # not for what is settled: losing that means one more delivery


def first_needed(db: sqlite3.Connection, known: ConsumerState, last: int, settled: Collection[int] = ()) -> int:
    """The lowest number that a consumer still needs; one above the last when it needs none.

    `settled` are numbers that are about to be written as such.
    """
    is_settled = "SELECT 1 FROM deliveries WHERE consumer = ? AND number = ? AND (acknowledged OR parked IS NOT NULL)"
    for (number,) in of_subjects(db, "number", known.subjects, known.floor):
        if number not in settled and db.execute(is_settled, (known.name, number)).fetchone() is None:
            return int(number)
    return last + 1


def _put_deliveries(db: sqlite3.Connection, name: str, change: ConsumerChanges, last: int) -> None:
    """A number that is not given out yet is no message, and nothing to settle."""
    known = registration(db, name)
    settled = {number for number in change.settled | change.parked.keys() if known.floor < number <= last}
    floor = first_needed(db, known, last, settled) - 1 if settled else known.floor
    if floor > known.floor:
        put_consumer(db, name, known.subjects, floor)
        db.execute("DELETE FROM deliveries WHERE consumer = ? AND number <= ? AND parked IS NULL", (name, floor))
    for number in settled | change.deaths.keys():
        if floor < number <= last or (number in settled and number in change.parked):
            acknowledged, deaths, reason = _delivery(db, name, number)
            put(
                db,
                "deliveries",
                (name, number, int(acknowledged or number in change.settled), *change.deaths.get(number, deaths),
                 change.parked.get(number, reason)),
            )  # fmt: skip


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
