"""The truth about the engrams: one SQLite file, written by its owner alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from local.services.engrams.reader import Reader
from local.services.engrams.schema import FILE_NAME, MIGRATIONS
from local.services.owned_database import OwnedDatabase

T = TypeVar("T")


class EngramStore:
    """Use as `async with`. Whoever opened the file last is its owner: nobody else may write.

    Raises `StoreFailed`, `StoreFull` where the disk is full, and `StoreFenced` in a process that is not the owner.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._database = OwnedDatabase(self._path, MIGRATIONS)

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        try:
            self._reader = Reader(self._path)
        except BaseException:
            await self._database.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.close()
        await self._database.__aexit__(kind, error, trace)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, beside whatever is being written."""
        return await self._reader.run(work)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""
        return await self._database.write(work)

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, and afterwards what `work` has deleted is in no file, the write-ahead log included."""
        return await self._database.erase(work)
