"""What is heard on the bus of the memory's process: how it lives, and which exchanges it says it has stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import ChildStatus, ParticipantStatus
from local.memory.messages import MemoryIngested

MEMORY, SUPERVISOR, READY = "memory", "supervisor", "ready"


class MemoryWatch:
    """Make it before `bus.ready()`. `told` are the ids of the queries whose ingestion was told."""

    def __init__(self, bus: Bus) -> None:
        self.told: set[str] = set()
        self.child: ChildStatus | None = None
        self.ready_at: float | None = None  # by the monotonic clock; None for one that is not ready
        self.status: ParticipantStatus | None = None
        self.beats = 0  # of the memory itself
        self._news = asyncio.Event()
        bus.subscribe(ParticipantStatus.subject, self._hear_status)
        bus.subscribe(MemoryIngested.subject, self._hear_ingested)

    @property
    def pid(self) -> int | None:
        """Of the process as the supervisor knows it, None while there is none."""
        return None if self.child is None else self.child.pid

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return 0 if self.child is None else self.child.restarts

    @property
    def is_indexed(self) -> bool:
        """Whether it searches by meaning, too, as it says itself."""
        status = self.status
        return (
            status is not None
            and self.ready_at is not None
            and status.pid == self.pid
            and status.details.get("index") == READY
        )

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing left to do."""
        pending = ("embeddings_pending", "classifications_pending", "deletions_pending")
        return self.is_indexed and self.status is not None and not any(self.status.counters[name] for name in pending)

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Look at everything that is heard until it holds; False if it does not within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _hear_status(self, envelope: Envelope) -> None:
        status = ParticipantStatus.decode(envelope.payload)
        if status.name == MEMORY:
            self.status = status
            self.beats += 1
        elif status.name == SUPERVISOR:
            self._take(next((child for child in status.children if child.name == MEMORY), None))
        self._news.set()

    def _take(self, child: ChildStatus | None) -> None:
        if child is None or child.state != READY:
            self.ready_at = None
        elif self.child is None or self.child.pid != child.pid or self.ready_at is None:
            self.ready_at = time.monotonic()
        self.child = child

    def _hear_ingested(self, envelope: Envelope) -> None:
        self.told.add(MemoryIngested.decode(envelope.payload).query_id)
        self._news.set()
