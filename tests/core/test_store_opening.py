"""A store that is opened while its disk is full or read-only waits, says so, and goes on by itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from local.core.database import Database, store_failure
from local.core.errors import StoreFailed, StoreReadOnly
from local.journal.store import JournalStore
from local.memory.store import EngramStore

Until = Callable[[Callable[[], object]], Awaitable[None]]
Store = AbstractAsyncContextManager[Any]
STORES: dict[str, Callable[[Path], Store]] = {
    "database": lambda folder: Database(folder / "notes.db", ["CREATE TABLE notes (text TEXT)"]),
    "engrams": EngramStore,
    "journal": lambda folder: JournalStore(folder / "journal.db"),
}


@pytest.mark.parametrize("store", STORES)
async def test_opening_waits_while_nothing_can_be_written(
    small_disk: Any, store: str, caplog: pytest.LogCaptureFixture, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.core.database.UNWRITABLE_SECONDS", 0.02)
    monkeypatch.setattr("local.core.database.SAY_SECONDS", 0.0)
    make, folder = STORES[store], small_disk.folder / "data"

    async def opens(*, waits_for: str, free: Callable[[], object]) -> None:
        caplog.clear()
        opened = make(folder)
        opening = asyncio.create_task(opened.__aenter__())
        await until(lambda: opening.done() or ("opening waits: " in caplog.text and waits_for in caplog.text))
        assert not opening.done(), opening
        free()
        await asyncio.wait_for(opening, 90)
        await opened.__aexit__(None, None, None)

    folder.mkdir()
    small_disk.fill_names()
    await opens(waits_for="the disk is full", free=small_disk.free)  # makes the file
    small_disk.fill()
    await opens(waits_for="the disk is full", free=small_disk.free)
    read_only = small_disk.read_only()
    read_only.__enter__()
    await opens(waits_for="the file system is read-only", free=lambda: read_only.__exit__(None, None, None))
    (alive := small_disk.folder / "alive").mkdir()
    async with make(alive):
        shutil.rmtree(folder)
        shutil.copytree(alive, folder)  # with all that SQLite keeps beside a file in use, as after a kill -9
    read_only = small_disk.read_only()
    read_only.__enter__()
    await opens(waits_for="", free=lambda: read_only.__exit__(None, None, None))


def test_a_file_system_that_is_read_only_and_does_not_say_so_is_found_out(
    small_disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_disk.folder / "notes.db"
    sqlite3.connect(path).close()
    writable = os.statvfs(small_disk.folder)
    monkeypatch.setattr(os, "statvfs", lambda folder: writable)  # as ext4 is after a fault on newer kernels
    with small_disk.read_only(), pytest.raises(sqlite3.Error) as failed, closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
    with small_disk.read_only():
        assert isinstance(store_failure(path, failed.value), StoreReadOnly)
    assert type(store_failure(path, failed.value)) is StoreFailed
