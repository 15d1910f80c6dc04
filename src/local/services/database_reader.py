"""A second way into a database file: reads that do not wait behind its owner's commits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from local.services.sqlite_file import store_failure

T = TypeVar("T")
LOCKED_SECONDS = 1.0


class DatabaseReader:
    """Sees what is committed, and can change nothing. The file has to be there at the first `read`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"reader {path.name}")
        self._connection: sqlite3.Connection | None = None

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which sees one state of the file. Raises `StoreFailed`."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, work)
        except sqlite3.Error as error:
            raise store_failure(self._path, error, what="cannot be read: ") from None

    def close(self) -> None:
        """Give up the connection; what is being read is read to its end."""
        self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = self._open()
        self._connection.execute("BEGIN")
        try:
            return work(self._connection)
        finally:
            self._connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        uri = f"{self._path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=LOCKED_SECONDS)
        connection.row_factory = sqlite3.Row
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
