"""How the memory is: its index, what waits to be done, and whether its files are sound."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from local.errors import StoreDamaged
from local.services.engrams import vectors
from local.services.engrams.store import FILE_NAME, MIGRATIONS
from local.services.engrams.vector_indexer import IndexerState
from local.services.sqlite_file import connect_read_only, naming_damage, store_failure


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """State of the vector index, what is wrong with it if anything is, and the model it is made with. How many engrams
    wait for a vector and for a classification, how many a model's reply to could not be read, and how many deletions
    not everybody knows of."""

    index: IndexerState
    trouble: str
    model: str
    pending: int
    unclassified: int
    unparsed: int
    deletions: int


def counts(db: sqlite3.Connection) -> tuple[int, int, int, int]:
    """The numbers of a `MemoryStatus`, in order."""
    unclassified, unparsed, deletions = db.execute(
        "SELECT (SELECT count(*) FROM engrams WHERE classified = 0 AND searchable),"
        " (SELECT count(*) FROM engrams WHERE classified = 2 AND searchable), (SELECT count(*) FROM deletions)"
    ).fetchone()
    return vectors.count_pending(db), unclassified, unparsed, deletions


@dataclass(frozen=True, slots=True)
class Condition:
    """How many engrams there are, and how many of them wait for a vector."""

    engrams: int
    pending: int


def examine(directory: Path) -> Condition | None:
    """The condition of a sound store; None where none was begun.

    Reads every page. Raises `StoreDamaged`, and `StoreFailed` for a file that cannot be read for another reason.
    """
    path = directory / FILE_NAME
    if not path.exists():
        return None
    try:
        with connect_read_only(path) as db, naming_damage():
            db.row_factory = sqlite3.Row
            db.execute("BEGIN")  # one snapshot for all that follows
            return _condition(db)
    except StoreDamaged as error:
        raise StoreDamaged(f"{path} is damaged: {error}") from error
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def _condition(db: sqlite3.Connection) -> Condition:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 1 <= version <= len(MIGRATIONS):
        raise StoreDamaged(f"its schema version is {version}; this program knows 1 to {len(MIGRATIONS)}")
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StoreDamaged(f"SQLite's check says: {verdict}")
    (engrams,) = db.execute("SELECT count(*) FROM engrams").fetchone()
    return Condition(engrams, vectors.count_pending(db))
