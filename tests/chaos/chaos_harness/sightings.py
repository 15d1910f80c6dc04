"""The witness's memory: one file, in which the same sighting twice is one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

SCHEMA = """CREATE TABLE IF NOT EXISTS seen (
    place INTEGER PRIMARY KEY, query_id TEXT NOT NULL, session_id TEXT NOT NULL, answer TEXT NOT NULL,
    UNIQUE (query_id, answer)
)"""


class Sighting(NamedTuple):
    """One answer to one query; a second, different one to the same query is a sighting of its own."""

    query_id: str
    session_id: str
    answer: str


class Sightings:
    """The file, for as long as a `with` block lasts; to be used by one thread at a time."""

    def __init__(self, store: Path) -> None:
        self._store = store

    def __enter__(self) -> Self:
        self._rows = sqlite3.connect(self._store, check_same_thread=False)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute(SCHEMA)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows.close()

    def keep(self, sighting: Sighting) -> None:
        """Remember it, for good; if it is known, nothing changes."""
        with self._rows:
            self._rows.execute("INSERT OR IGNORE INTO seen (query_id, session_id, answer) VALUES (?, ?, ?)", sighting)

    def all(self) -> list[Sighting]:
        """Everything that was seen, in order."""
        return [
            Sighting(*row) for row in self._rows.execute("SELECT query_id, session_id, answer FROM seen ORDER BY place")
        ]
