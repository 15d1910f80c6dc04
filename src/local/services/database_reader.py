"""A second way into a database file: reads that do not wait behind its owner's commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from local.services.sqlite_file import store_failure

T = TypeVar("T")


class DatabaseReader:
    """Sees what is committed, and can change nothing. For a few rows, which are there before a thread has begun: it
    reads in the caller's thread, and never waits for a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which sees one state of the file. Raises `StoreFailed`."""
        try:
            if self._connection is None:
                self._connection = self._open()
            self._connection.execute("BEGIN")
            try:
                return work(self._connection)
            finally:
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_failure(self._path, error, what="cannot be read: ") from None

    def close(self) -> None:
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        uri = f"{self._path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)
        connection.row_factory = sqlite3.Row
        return connection
