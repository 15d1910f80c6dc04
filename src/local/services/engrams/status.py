"""How the memory is: its index, and what waits to be done."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from local.services.engrams import vectors
from local.services.engrams.keeper import KeeperState


@dataclass(frozen=True, slots=True)
class Status:
    """State of the vector index, what is wrong with it if anything is, and the model it is made with. How many engrams
    wait for a vector and for a classification, how many a model's reply to could not be read, and how many deletions
    not everybody knows of."""

    index: KeeperState
    trouble: str
    model: str
    pending: int
    unclassified: int
    unparsed: int
    deletions: int


def counts(db: sqlite3.Connection) -> tuple[int, int, int, int]:
    """The numbers of a `Status`, in order."""
    unclassified, unparsed, deletions = db.execute(
        "SELECT (SELECT count(*) FROM engrams WHERE classified = 0 AND searchable),"
        " (SELECT count(*) FROM engrams WHERE classified = 2 AND searchable), (SELECT count(*) FROM deletions)"
    ).fetchone()
    return vectors.count_pending(db), unclassified, unparsed, deletions
