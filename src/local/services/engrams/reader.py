"""Reading the engrams while they are written: a second connection that can do nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from local.services.database import store_failure

T = TypeVar("T")


class Reader:
    """Reads in threads, one read at a time. The file has to exist; close it before its `Database`."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreFailed`."""
        self._path = path
        self._free = threading.Lock()
        try:
            self._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA cache_size=-16000")
        except sqlite3.Error as error:
            raise store_failure(path, error) from None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`; all it reads is of one moment. Raises `StoreFailed`."""
        return await asyncio.to_thread(self._run, work)

    async def close(self) -> None:
        """Wait for reads under way and end."""
        await asyncio.to_thread(self._close)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._free:
            try:
                self._connection.execute("BEGIN")
                try:
                    return work(self._connection)
                finally:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise store_failure(self._path, error) from None

    def _close(self) -> None:
        with self._free:
            self._connection.close()
