"""Generations of a log: it continues in another stream, without what was deleted, also if who began that dies."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from local.bus.envelope import Envelope, new_id
from local.core.errors import StoreFenced
from local.journal.jetstream import JetStreamLog, LogAddress
from local.journal.replicated import ReplicatedJournalStore, replica
from local.journal.schema import Entry, create_mark, mark_path, read_state
from local.journal.writer import _entry_of
from tests.nats_cluster import Cluster

SECRET = "zanzibar-in-the-rain"


class Killed(Exception):
    pass


class KilledLog(JetStreamLog):
    """The log of a process that dies once the old stream has ended, before anything else is done."""

    async def _follow(self, after: int) -> None:
        raise Killed


def entry(number: int, text: str = "{}") -> Entry:
    session_id = f"s{number % 2}"
    return _entry_of(
        Envelope("query.received", new_id(), "api", "i", number, "q", text.encode(), session_id=session_id)
    )


def files_with(folder: Path, text: str) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if text.encode() in path.read_bytes()]


async def commit_all(store: ReplicatedJournalStore, numbers: range) -> None:
    for number in numbers:
        await store.commit([entry(number)])


@pytest.mark.parametrize("mover", [JetStreamLog, KilledLog])
async def test_a_log_continues_in_its_next_generation_without_what_was_deleted(
    cluster: Cluster, tmp_path: Path, mover: type[JetStreamLog]
) -> None:
    address, one, two = LogAddress.parse(cluster.address("cell")), tmp_path / "one", tmp_path / "two"
    (one / "blobs" / "ab").mkdir(parents=True)
    (one / "blobs" / "ab" / "abc").write_text("a large field")
    two.mkdir()
    async with ReplicatedJournalStore(one / "journal.db", JetStreamLog(address, folder=one)) as store:
        await store.commit([entry(1, f'{{"query": "{SECRET}"}}'), entry(2)])
        assert await store.redact_session("s1") == 1
        assert files_with(cluster.folder, SECRET)
        with closing(sqlite3.connect(one / "journal.db")) as db, closing(sqlite3.connect(tmp_path / "copy")) as copy:
            db.backup(copy)
            known = replica(copy)
        assert known is not None
        await commit_all(store, range(3, 10))
        moving = mover(address, folder=one)
        async with moving.open(), asyncio.TaskGroup() as tasks:
            tasks.create_task(commit_all(store, range(10, 60)))  # meanwhile
            with suppress(Killed):
                await moving.move(tmp_path / "copy", known.position)
        await store.commit([entry(60)])
        before = await store.state(), await store.read(limit=100)
    assert not files_with(tmp_path, SECRET)  # of the servers, too

    restoring = JetStreamLog(address, folder=two)
    async with restoring.open():
        assert await restoring.get_snapshot(two / "journal.db")
        with closing(sqlite3.connect(two / "journal.db")) as db:
            create_mark(mark_path(two / "journal.db"), read_state(db))
    assert (two / "blobs" / "ab" / "abc").read_text() == "a large field"
    async with ReplicatedJournalStore(two / "journal.db", JetStreamLog(address, folder=two)) as store:
        assert (await store.state(), await store.read(limit=100)) == before


async def test_an_owner_that_was_frozen_before_a_generation_ended_is_fenced(cluster: Cluster, tmp_path: Path) -> None:
    address = LogAddress.parse(cluster.address("cell"))
    for machine in ("frozen", "next"):
        (tmp_path / machine).mkdir()
    frozen = ReplicatedJournalStore(tmp_path / "frozen" / "journal.db", JetStreamLog(address))
    async with frozen:
        await frozen.commit([entry(1)])
        folder = tmp_path / "next"
        async with ReplicatedJournalStore(folder / "journal.db", JetStreamLog(address, folder=folder)) as store:
            moving = JetStreamLog(address, folder=folder)
            async with moving.open() as last:
                await moving.move(folder / "journal.db", last)
            await store.commit([entry(2)])
        with pytest.raises(StoreFenced):
            await frozen.commit([entry(3)])
