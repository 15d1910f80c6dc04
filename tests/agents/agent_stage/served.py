"""A participant that is being served, and can be killed."""

from __future__ import annotations

import asyncio

from agent_stage.frontend import SECONDS

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.zeromq import MemoryHub, MemoryTransport
from local.generator.history import ConversationService
from local.journal.client import JournalClient
from local.runtime.participant import Participant
from local.runtime.runner import ParticipantRunner


class Wire(MemoryTransport):
    """One participant's end of the hub, which can be cut."""

    is_cut = False

    def send(self, frame: bytes) -> bool:
        return self.is_cut or super().send(frame)

    def deliver(self, frame: bytes) -> None:
        if not self.is_cut:
            super().deliver(frame)


class Record(ConversationService):
    """A record whose process can die: later writes never reach the disk."""

    def die(self) -> None:
        self._database._put = lambda *_, **__: asyncio.get_running_loop().create_future()


class Served:
    """A participant that is being served."""

    def __init__(
        self,
        participant: Participant,
        hub: MemoryHub,
        sender: str,
        record: Record | None = None,
        blobs: BlobStore | None = None,
    ) -> None:
        self._wire, self._record, self.participant = Wire(hub), record, participant
        durability = JournalClient() if participant.journaled else None
        self.bus = Bus(sender, self._wire, blobs=blobs, durability=durability)
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        runner = ParticipantRunner(participant, self.bus, child=type(participant).__name__)
        self._task = asyncio.create_task(runner.run(self._stop, self._ready.set))

    async def ready(self) -> None:
        waiting = asyncio.create_task(self._ready.wait())
        async with asyncio.timeout(SECONDS):
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def stop(self) -> None:
        """Stop as SIGTERM does."""
        self._stop.set()
        await self.ended()

    async def ended(self) -> None:
        """Wait until it has ended by itself."""
        async with asyncio.timeout(SECONDS):
            await self._task

    def die(self) -> None:
        """Die as with `kill -9`, as far as possible in one process: from now on nothing that it does has any effect."""
        self._wire.is_cut = True
        if self._record is not None:
            self._record.die()
        self._task.cancel()

    async def dead(self) -> None:
        async with asyncio.timeout(SECONDS):
            await asyncio.wait({self._task})

    async def kill(self) -> None:
        self.die()
        await self.dead()

    async def end(self) -> None:
        if not self._task.done():
            await self.stop()
