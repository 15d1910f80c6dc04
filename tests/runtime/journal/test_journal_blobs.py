"""Deleting a session takes its large fields along, too, unless somebody else refers to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.memory import MemoryHub
from local.protocol.envelope import Trace
from local.protocol.journal_messages import JournalRedact, JournalRedacted
from local.protocol.messages import ResponseGeneration
from local.runtime.host import Host
from local.runtime.journal import Journal, JournalConfig
from local.services.journal.store import JournalStore

LARGE = "word " * 20_000


@asynccontextmanager
async def journaled_bus(folder: Path) -> AsyncIterator[Bus]:
    hub, blobs = MemoryHub(), BlobStore(folder / "blobs")
    journal = Journal(JournalConfig(), JournalStore(folder / "journal.db"), blobs)
    stop, ready = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(Host(journal, Bus("journal", hub.transport(), blobs=blobs)).run(stop, ready.set))
    async with asyncio.timeout(20), Bus("door", hub.transport(), blobs=blobs, journaled=True) as bus:
        await ready.wait()
        await bus.ready()
        yield bus
    stop.set()
    await serving


async def answer(bus: Bus, query_id: str, session_id: str) -> None:
    response = ResponseGeneration(query_id=query_id, status="answered", query="?", answer=LARGE)
    await bus.publish(response, Trace(query_id, None, session_id))


def blobs_in(folder: Path) -> int:
    return sum(file.is_file() for file in (folder / "blobs").rglob("*"))


async def test_a_large_field_goes_with_the_last_session_that_refers_to_it(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await answer(bus, "q1", "first")
        await answer(bus, "q2", "second")
        assert blobs_in(tmp_path) == 1

        assert (await bus.request(JournalRedact(session_id="first"), JournalRedacted, 10)).count == 1
        assert blobs_in(tmp_path) == 1

        assert (await bus.request(JournalRedact(session_id="second"), JournalRedacted, 10)).count == 1
        assert blobs_in(tmp_path) == 0
