"""A store that is opened while its disk is full, or takes no changes: it waits, says so, and goes on by itself."""

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

from local.core.database import Database, OwnedDatabase, store_failure
from local.core.errors import StoreFailed, StoreReadOnly
from local.journal.store import JournalStore
from local.memory.service import EngramService
from local.memory.store import EngramStore

Until = Callable[[Callable[[], object]], Awaitable[None]]
Store = AbstractAsyncContextManager[Any]
STORES: dict[str, Callable[[Path], Store]] = {
    "database": lambda folder: Database(folder / "notes.db", ["CREATE TABLE notes (text TEXT)"]),
    "owned": lambda folder: OwnedDatabase(folder / "notes.db", ["CREATE TABLE notes (text TEXT)"]),
    "engrams": EngramStore,
    "memory": lambda folder: EngramService(folder / "engrams"),
    "journal": lambda folder: JournalStore(folder / "journal.db"),
}


@pytest.fixture(params=STORES)
def make_store(request: pytest.FixtureRequest) -> Callable[[Path], Store]:
    """Makes a store of one kind in a folder."""
    return STORES[request.param]


@pytest.fixture(params=["new", "known"])
def folder(request: pytest.FixtureRequest, small_disk: Any, make_store: Callable[[Path], Store]) -> Path:
    """On the small disk, with a store in it or without."""
    path: Path = small_disk.folder / "data"
    path.mkdir()
    if request.param == "known":
        asyncio.run(_make(make_store(path)))
    return path


async def _make(store: Store) -> None:
    async with store:
        pass


async def test_opening_waits_for_room_and_says_so(
    small_disk: Any, folder: Path, make_store: Callable[[Path], Store], caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    small_disk.fill()
    store = make_store(folder)
    opening = asyncio.create_task(store.__aenter__())
    await until(lambda: opening.done() or ("opening waits: " in caplog.text and "the disk is full" in caplog.text))
    assert not opening.done(), opening
    small_disk.free()
    await asyncio.wait_for(opening, 30)
    await store.__aexit__(None, None, None)


async def test_opening_waits_for_room_for_files(
    small_disk: Any, folder: Path, make_store: Callable[[Path], Store], caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    small_disk.fill_names()
    store = make_store(folder)
    opening = asyncio.create_task(store.__aenter__())
    await until(lambda: opening.done() or ("opening waits: " in caplog.text and "the disk is full" in caplog.text))
    assert not opening.done(), opening
    small_disk.free()
    await asyncio.wait_for(opening, 30)
    await store.__aexit__(None, None, None)


async def test_opening_waits_until_the_file_can_be_written_and_says_so(
    small_disk: Any, folder: Path, make_store: Callable[[Path], Store], caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    store = make_store(folder)
    with small_disk.read_only():
        opening = asyncio.create_task(store.__aenter__())
        await until(lambda: opening.done() or "opening waits: " in caplog.text)
        assert not opening.done(), opening
        assert "the file system is read-only" in caplog.text
    await asyncio.wait_for(opening, 30)
    await store.__aexit__(None, None, None)


async def test_what_a_killed_process_has_left_is_not_opened_to_be_read_alone(
    small_disk: Any, make_store: Callable[[Path], Store], caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    (alive := small_disk.folder / "alive").mkdir()
    async with make_store(alive):
        left = shutil.copytree(alive, small_disk.folder / "data")  # with all that SQLite keeps beside a file in use
    store = make_store(left)
    with small_disk.read_only():
        opening = asyncio.create_task(store.__aenter__())
        await until(lambda: opening.done() or "opening waits: " in caplog.text)
        assert not opening.done(), opening
    await asyncio.wait_for(opening, 30)
    await store.__aexit__(None, None, None)


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
