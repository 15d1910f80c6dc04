"""What is still sound in a broken journal: every row that can be reached and matches its checksum."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from local.errors import StoreDamaged
from local.services.journal.check import naming_damage
from local.services.journal.schema import COLUMNS, is_sound

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
