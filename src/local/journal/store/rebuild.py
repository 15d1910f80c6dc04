"""A journal file from scratch: empty, or with what is sound in a broken one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.errors import StoreDamaged
from local.journal.store.damage import Ranges, missing
from local.journal.store.entries import bury
from local.journal.store.schema import COLUMNS, MIGRATIONS, JournalState, is_sound, put, write_state
from local.services.sqlite_file import connect_read_only, migrate, naming_damage

UNKNOWN_TAIL = 2**20  # numbers skipped where nobody can say how many had been given out


@dataclass(frozen=True, slots=True)
class Built:
    """A new journal: its state, the number of entries in it, and the ranges of numbers that were lost just now."""

    state: JournalState
    salvaged: int
    lost: Ranges


def build_journal(path: Path, broken: Path | None, mark: JournalState | None) -> Built:
    """Write a journal at `path`, over a half-made one, from what is sound in `broken`, which may be missing.

    `mark` is the broken one's high-water mark, None where it could not be read. The file is on the disk, complete and
    in WAL mode, when this returns. Raises `sqlite3.Error` and `OSError` where it cannot be written.
    """
    for half_made in path.parent.glob(f"{path.name}*"):
        half_made.unlink()
    with ExitStack() as stack:
        source = stack.enter_context(connect_read_only(broken)) if broken and broken.exists() else None
        if source:
            source.execute("PRAGMA writable_schema=ON")  # the tables can be read though an index is described badly
        db = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
        # No crash needs undoing in a file that nobody uses before it is complete.
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # or what is removed would leave the file as large as it was
        db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=ON")
        migrate(db, MIGRATIONS)
        db.execute("BEGIN")
        built = _fill(db, source, mark) if source else _begin(db, mark, consumers_in_doubt=broken is not None)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=WAL")
    with path.open("r+b") as file:
        os.fsync(file.fileno())
    return built


def _begin(db: sqlite3.Connection, mark: JournalState | None, *, consumers_in_doubt: bool) -> Built:
    """A journal without entries; a mark says what it should have held."""
    state = _state_after(mark, None, 0)._replace(consumers_in_doubt=consumers_in_doubt)
    return _finish(db, state, [], [])


def _fill(db: sqlite3.Connection, source: sqlite3.Connection, mark: JournalState | None) -> Built:
    consumers, has_all_consumers = sound_rows(source, "consumers")
    found = next((JournalState(*row[1:]) for row in sound_rows(source, "state")[0]), None)
    state = _state_after(mark, found, highest_number(source))
    for row in consumers:
        put(db, "consumers", row)
    for table in ("deliveries", "servers"):
        for row in sound_rows(source, table)[0]:
            put(db, table, row)
    numbers = []
    for row in sound_entries(source, state.first_number, state.last_number):
        put(db, "entries", row)
        numbers.append(row[0])
    for kind, identifier, up_to in sound_rows(source, "tombstones")[0]:
        put(db, "tombstones", (kind, identifier, up_to))
        bury(db, kind, identifier, up_to)
    gaps = [(first, last) for first, last in sound_rows(source, "gaps")[0]]
    in_doubt = not has_all_consumers or bool(found and found.consumers_in_doubt)
    return _finish(db, state._replace(consumers_in_doubt=in_doubt), numbers, gaps)


def _state_after(mark: JournalState | None, found: JournalState | None, highest: int) -> JournalState:
    """Numbering goes on behind everything that may have been given out."""
    latest = max(state for state in (mark, found, JournalState()) if state is not None)
    first = max(mark.first_number if mark else 1, found.first_number if found else 1)
    last = max(latest.last_number, 0 if found else highest)
    if mark is None:
        last += UNKNOWN_TAIL
    return latest._replace(changes=latest.changes + 1, first_number=first, last_number=last)


def _finish(db: sqlite3.Connection, state: JournalState, numbers: list[int], known_gaps: Ranges) -> Built:
    gaps = missing(numbers, state.first_number, state.last_number)
    for gap in gaps:
        put(db, "gaps", gap)
    write_state(db, state)
    return Built(state, len(numbers), [gap for gap in gaps if gap not in known_gaps])


Row = tuple[Any, ...]


def sound_rows(db: sqlite3.Connection, table: str) -> tuple[list[Row], bool]:
    """The sound rows of a table, checksums left out, and whether they are all there were."""
    found: list[Row] = []
    is_whole = True
    try:
        with naming_damage():
            for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table}"):
                found.append(row)
    except StoreDamaged:
        is_whole = False
    sound = [row[:-1] for row in found if is_sound(row)]
    return sound, is_whole and len(sound) == len(found)


def sound_entries(db: sqlite3.Connection, first: int, last: int) -> Iterator[Row]:
    """The sound entries by ascending number; where the file cannot be read, what lies behind that is tried next."""
    after = first - 1
    while after < last and _has_entries(db):
        try:
            with naming_damage(), closing(_entries_above(db, after)) as found:
                for row in found:
                    if is_sound(row) and after < row[0] <= last:
                        after = row[0]
                        yield row[:-1]
            return
        except StoreDamaged:
            after += 1


def highest_number(db: sqlite3.Connection) -> int:
    """The number of the last sound entry; 0 where none can be found from the end."""
    try:
        with naming_damage():
            newest_first = db.execute(f"SELECT {COLUMNS['entries']} FROM entries ORDER BY number DESC")
            return next((int(row[0]) for row in newest_first if is_sound(row)), 0)
    except StoreDamaged:
        return 0


def _has_entries(db: sqlite3.Connection) -> bool:
    """Whether there is such a table at all; if not, every number would fail in the same way."""
    try:
        with naming_damage():
            return bool(db.execute("SELECT number FROM entries LIMIT 0").description)
    except StoreDamaged:
        return False


def _entries_above(db: sqlite3.Connection, number: int) -> sqlite3.Cursor:
    return db.execute(f"SELECT {COLUMNS['entries']} FROM entries WHERE number > ? ORDER BY number", (number,))
