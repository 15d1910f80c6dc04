"""For information: our transport alone, frames of the same size that nobody packs or parses."""

from __future__ import annotations

import asyncio

from benchmarks.peer import Pipe
from benchmarks.talk import Meter, obey, until_answered
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress

BODY = b"x" * 1500
NOTE, REQUEST, RESULT = b"raw.note", b"raw.request", b"raw.result"


def talk(pipe: Pipe, address: BusAddress) -> None:
    """The talker's process."""
    asyncio.run(_talk(pipe, address))


def listen(pipe: Pipe, address: BusAddress) -> None:
    """The listener's process."""
    asyncio.run(_listen(pipe, address))


class _Talker:
    def __init__(self, address: BusAddress) -> None:
        self._transport = ZeroMQTransport(address)
        self._answered = asyncio.Event()
        self.linked = asyncio.Event()
        self._transport.open(lambda frame: self._answered.set(), lambda up: self.linked.set())
        self._transport.subscribe(RESULT)

    async def say(self) -> None:
        while not self._transport.send(NOTE + BODY):
            await self._transport.writable()

    async def ask(self) -> None:
        self._answered.clear()
        self._transport.send(REQUEST + BODY)
        await self._answered.wait()


async def _talk(pipe: Pipe, address: BusAddress) -> None:
    talker = _Talker(address)
    await talker.linked.wait()
    await until_answered(talker)
    await obey(pipe, talker)


async def _listen(pipe: Pipe, address: BusAddress) -> None:
    transport, meter = ZeroMQTransport(address), Meter(pipe)

    def receive(frame: bytes) -> None:
        if frame.startswith(NOTE):
            meter.hit()
        else:
            transport.send(RESULT + BODY)

    transport.open(receive, lambda up: None)
    transport.subscribe(NOTE)
    transport.subscribe(REQUEST)
    pipe.send("ready")
    await asyncio.Event().wait()
