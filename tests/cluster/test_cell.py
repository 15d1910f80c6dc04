"""A cell: a whole system that another machine continues."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

import httpx
import pytest
from chaos_harness.cell_run import Machines

from local.bus.envelope import Envelope, new_id
from local.core.errors import ConfigError, StoreFenced
from local.journal.schema import Entry
from local.journal.server import _open_replicated
from local.journal.writer import _entry_of
from local.run.cell import LEASE_SECONDS, Cell
from tests.nats_cluster import IS_POSSIBLE, Cluster

log = logging.getLogger(__name__)

SECRET = "zanzibar-in-the-rain"
DELETED_SECONDS = 60.0


def files_with(text: str, folder: Path) -> list[Path]:
    """The files with a text of all servers and machines; files may vanish meanwhile."""
    found = []
    folders = (os.walk(each) for begins in ("servers*", "machine-*") for each in folder.glob(begins))
    for root, _, names in chain.from_iterable(folders):
        for name in names:
            with suppress(FileNotFoundError):
                if text.encode() in (path := Path(root, name)).read_bytes():
                    found.append(path)
    return found


def entry(query_id: str, payload: str) -> Entry:
    return _entry_of(Envelope("query.received", new_id(), "api", "i", int(query_id[1:]), query_id, payload.encode()))


@pytest.mark.system
@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_POSSIBLE, reason="needs nats-server, and loopback addresses as Linux has them")
async def test_another_machine_continues_without_what_was_deleted(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    attached = b"Words that only the file has. " * 3000
    async with machines.running(), httpx.AsyncClient(base_url=machines.url, timeout=60, trust_env=False) as http:

        async def ask(session_id: str, query: str, **more: object) -> str:
            answer = await http.post("/query", json={"query": query, "session_id": session_id, **more})
            assert answer.status_code == 200, answer.text
            return str(answer.json()["answer"])

        await ask("gone", f"My badge number is {SECRET}.")
        added = await http.post("/attachments?name=a.txt", content=attached)
        await ask("kept", "My badge number is K-1.", attachments=[added.json()["id"]])
        assert files_with(SECRET, tmp_path)
        (await http.delete("/sessions/gone")).raise_for_status()
        deleted_at = time.monotonic()
        while found := files_with(SECRET, tmp_path):
            assert time.monotonic() - deleted_at < DELETED_SECONDS, found
            await asyncio.sleep(0.1)
        log.info("the deleted text was in no file after %.1f s", time.monotonic() - deleted_at)

        await machines.lose()
        assert "K-1" in await ask("kept", "Can you remind me of my badge number?")
        content = await http.get(f"/attachments/{added.json()['id']}/content")
        assert content.content == attached
        assert (await http.get("/sessions/gone/turns")).status_code == 404


@pytest.mark.timeout(120)
async def test_a_standby_takes_over_from_a_machine_that_sleeps(cluster: Cluster, tmp_path: Path) -> None:
    """The first machine is not dead, only slow: it learns that it was replaced, and its journal confirms nothing."""
    address = cluster.address("cell")
    first, second, other = (tmp_path / name for name in ("machine-a", "machine-b", "other"))
    for folder in (first, second, other):
        folder.mkdir()
    (first / "approvals.db").touch()
    (other / "mine.txt").touch()
    was_lost = asyncio.Event()
    sleeping = Cell(first, address, ())
    await asyncio.to_thread(sleeping.__enter__)
    sleeping.when_lost(partial(asyncio.get_running_loop().call_soon_threadsafe, was_lost.set))
    async with _open_replicated(first, address) as journal:
        (first / "attachments").mkdir()
        (first / "attachments" / ("a" * 64)).write_text("a file")
        await journal.commit(
            [entry("q1", f'{{"query": "{SECRET}"}}'), entry("q2", f'{{"query":"","attachments":["{"a" * 64}"]}}')]
        )
        await journal.redact_query("q1")
        while files_with(SECRET, tmp_path):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)
        sleeping._loop.call_soon_threadsafe(time.sleep, 2 * LEASE_SECONDS)
        with pytest.raises(ConfigError, match=r"has data that is not from the cell cell \(mine.txt\)"):
            await asyncio.to_thread(Cell(other, address, ()).__enter__)
        running = Cell(second, address, ())
        await asyncio.to_thread(running.__enter__)
        assert "this machine has taken over the cell cell; " in running.notice
        with pytest.raises(StoreFenced):
            await journal.commit([entry("q3", "{}")])
    await was_lost.wait()
    await asyncio.to_thread(sleeping.__exit__)
    with pytest.raises(StoreFenced, match="another machine runs this cell now"):
        await (_open_replicated(first, address)).__aenter__()
    async with _open_replicated(second, address) as journal:
        assert [one.entry.correlation_id for one in await journal.read(limit=9)] == ["q1", "q2"]
    assert (second / "attachments" / ("a" * 64)).read_text() == "a file"

    async with (
        asyncio.TaskGroup() as tasks
    ):  # an orderly end: the first machine continues at once, without its old data
        again = Cell(first, address, ())
        entering = tasks.create_task(asyncio.to_thread(again.__enter__))
        while (first / "journal.db").exists():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)
        await asyncio.to_thread(running.__exit__)
        await entering
    assert (first / "attachments" / ("a" * 64)).exists()
    await asyncio.to_thread(again.__exit__)
