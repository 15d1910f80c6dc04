"""Hears on a system's bus what was made of queries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from benchmarks.figure import BenchmarkFailed
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import CRITIQUE_RESULT, MEMORY_CLASSIFIED, MEMORY_INGESTED
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.core.data_dir import RunInfo

LAST_OF_OBSERVERS = (CRITIQUE_RESULT, MEMORY_INGESTED, MEMORY_CLASSIFIED)
SECONDS = 60.0


class Witness:
    """What was heard so far, in `heard`."""

    def __init__(self) -> None:
        self.heard: list[Envelope] = []
        self._news = asyncio.Event()

    def hear(self, envelope: Envelope) -> None:
        """Something was said."""
        self.heard.append(envelope)
        self._news.set()

    async def observers_are_done(self, query_ids: Iterable[str]) -> None:
        """Until memory and critic have said their last of these queries. Raises `BenchmarkFailed`."""
        missing = {(query_id, subject) for query_id in query_ids for subject in LAST_OF_OBSERVERS}
        try:
            async with asyncio.timeout(SECONDS):
                while missing := missing - {(_query_of(envelope), envelope.subject) for envelope in self.heard}:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise BenchmarkFailed(f"observers are not done: {sorted(missing)[:3]}, {len(missing)} in all") from None
        self.heard.clear()


@asynccontextmanager
async def witness(facts: RunInfo, *subjects: str) -> AsyncIterator[Witness]:
    """Hears these subjects and families of a running system from now on."""
    here = Witness()
    async with Bus("bench", ZeroMQTransport(BusAddress(facts.publish_to, facts.subscribe_to))) as bus:
        for subject in subjects:
            bus.subscribe(subject, here.hear)
        await bus.ready()
        yield here


def _query_of(envelope: Envelope) -> str:
    query_id: str = json.loads(envelope.payload)["query_id"]
    return query_id
