"""Is a journal what it was when it was last acknowledged? Reads only; the file and its WAL stay as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from local.errors import StoreDamaged
from local.journal.store.schema import COLUMNS, MIGRATIONS, JournalState, read_state, rows
from local.services.sqlite_file import connect_read_only, naming_damage, store_failure

TAIL = 20_000  # more entries than a WAL holds between two checkpoints
_MAGIC = b"SQLite format 3\0"
Ranges = list[tuple[int, int]]


def find_damage(path: Path, mark: JournalState | None, *, in_full: bool) -> str | None:
    """What is wrong with the journal at `path`, in words; None when it is sound.

    `in_full` reads every page and every row (about 50 MB/s), otherwise the state and the last `TAIL` entries. Raises
    `StoreFailed` for a file that cannot be read for another reason than damage.
    """
    if mark is None:
        return "the high-water mark is missing or unreadable"
    try:
        if fault := _fault_of_header(path):
            return fault
        with connect_read_only(path) as db, naming_damage():
            db.execute("BEGIN")  # one snapshot for all that follows
            return _fault(db, mark, in_full=in_full)
    except StoreDamaged as error:
        return str(error)
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def missing(numbers: Iterable[int], first: int, last: int) -> Ranges:
    """The ranges between `first` and `last`, both included, that the ascending `numbers` leave out."""
    ranges: Ranges = []
    expected = first
    for number in numbers:
        if number > expected:
            ranges.append((expected, number - 1))
        expected = number + 1
    return [*ranges, (expected, last)] if expected <= last else ranges


def _fault_of_header(path: Path) -> str | None:
    """What SQLite would take for a file to be left alone: an empty one, one in an older or unknown mode."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except FileNotFoundError:
        return "the file is missing"
    if not header.startswith(_MAGIC) or header[18:20] != b"\2\2":
        return "the file does not begin as a database in WAL mode does"
    return None


def _fault(db: sqlite3.Connection, mark: JournalState, *, in_full: bool) -> str | None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 1 <= version <= len(MIGRATIONS):
        return f"its schema version is {version}; this program knows 1 to {len(MIGRATIONS)}"
    if in_full:
        (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()  # quick_check looks into no index
        if verdict != "ok":
            return f"SQLite's integrity check says: {verdict}"
        for table in COLUMNS:
            if table != "entries":
                for _ in rows(db, table):
                    pass
    state = read_state(db)
    if state.changes < mark.changes:
        return f"it ends at entry {state.last_number}, but entry {mark.last_number} or a later change was acknowledged"
    if state.changes == mark.changes and state != mark:
        return "its high-water mark belongs to another journal"
    first = state.first_number if in_full else max(state.first_number, state.last_number - TAIL + 1)
    return _fault_of_numbers(db, first, state.last_number)


def _fault_of_numbers(db: sqlite3.Connection, first: int, last: int) -> str | None:
    known = [(start, end) for start, end in rows(db, "gaps")]
    for start, end in missing(_numbers(db, first), first, last):
        if not any(low <= start and end <= high for low, high in known):
            return f"entries {start} to {end} are missing"
    return None


def _numbers(db: sqlite3.Connection, first: int) -> Iterator[int]:
    for number, *_ in rows(db, "entries", "number >= ? ORDER BY number", (first,)):
        yield number
