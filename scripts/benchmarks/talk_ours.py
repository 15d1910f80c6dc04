"""Our bus: a `Bus` that publishes and asks, a participant on its `ParticipantRunner` that handles."""

from __future__ import annotations

import asyncio

from benchmarks.peer import Pipe
from benchmarks.talk import TRACE, Meter, note, obey, request, result
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import AnswerDialog, ToolRequest, ToolResult
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.runtime.participant import Participant, Settingless, on
from local.runtime.runner import ParticipantRunner


def talk(pipe: Pipe, address: BusAddress) -> None:
    """The talker's process."""
    asyncio.run(_talk(pipe, address))


def listen(pipe: Pipe, address: BusAddress) -> None:
    """The listener's process."""
    asyncio.run(_listen(pipe, address))


class _Talker:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def say(self) -> None:
        await self._bus.publish(note(), TRACE)

    async def ask(self) -> None:
        await self._bus.request(request(), ToolResult, 5.0, TRACE)


class _Listener(Participant):
    name = "bench_listener"

    def __init__(self, meter: Meter) -> None:
        super().__init__(Settingless())
        self._meter = meter

    @on(AnswerDialog)
    async def take(self, message: AnswerDialog, envelope: Envelope) -> None:
        self._meter.hit()

    @on(ToolRequest)
    async def answer(self, message: ToolRequest, envelope: Envelope) -> ToolResult:
        return result()


async def _talk(pipe: Pipe, address: BusAddress) -> None:
    async with Bus("bench_talker", ZeroMQTransport(address)) as bus:
        await bus.ready()
        await obey(pipe, _Talker(bus))


async def _listen(pipe: Pipe, address: BusAddress) -> None:
    host = ParticipantRunner(_Listener(Meter(pipe)), Bus("bench_listener", ZeroMQTransport(address)))
    await host.run(asyncio.Event(), lambda: pipe.send("ready"))
