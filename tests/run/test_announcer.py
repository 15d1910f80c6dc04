"""The supervisor on the bus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

import pytest

from local.bus.bus import Bus
from local.bus.messages import ParticipantStatus
from local.bus.zeromq import MemoryHub
from local.core.errors import BusNotReady
from local.run import run as announcer
from local.run.run import Announcer, ParticipantReloader
from local.runtime.supervisor import ChildPhase, ChildState, Supervisor


class Children:
    """A supervisor whose one child, the proxy, is ready when `is_up` says so."""

    def __init__(self) -> None:
        self.is_up = asyncio.Event()

    @property
    def children(self) -> tuple[ChildState, ...]:
        phase = ChildPhase.READY if self.is_up.is_set() else ChildPhase.STARTING
        return (ChildState("proxy", "proxy", 7, phase, 0, "", 0.0),)

    async def wait_until(self, true: Callable[[tuple[ChildState, ...]], bool]) -> None:
        while not true(self.children):
            await self.is_up.wait()


async def test_a_bus_that_is_not_started_yet_is_not_complained_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    children, hub, shaken = Children(), MemoryHub(), []
    async with Bus("supervisor", hub.transport()) as own, Bus("api", hub.transport()) as frontend:
        heard: asyncio.Queue[object] = asyncio.Queue()
        frontend.subscribe(ParticipantStatus.subject, heard.put_nowait)
        await frontend.ready()

        shake = own.ready

        async def refused_until_up() -> None:
            shaken.append(children.is_up.is_set())
            if not shaken[-1]:
                await asyncio.sleep(0)
                raise BusNotReady("ipc://bus", 10.0)
            await shake()

        monkeypatch.setattr(own, "ready", refused_until_up)
        with caplog.at_level(logging.WARNING):
            telling = asyncio.create_task(
                Announcer(own).run(cast(Supervisor, children), cast(ParticipantReloader, None))
            )
            for _ in range(10):
                await asyncio.sleep(0)
            children.is_up.set()
            await heard.get()
        telling.cancel()
    assert (shaken, caplog.messages) == ([True], [])


async def test_what_a_proxy_that_died_has_lost_is_said_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcer, "BEAT_SECONDS", 3600.0)
    children, hub = Children(), MemoryHub()
    children.is_up.set()
    async with Bus("supervisor", hub.transport()) as own, Bus("api", hub.transport()) as frontend:
        heard: asyncio.Queue[object] = asyncio.Queue()
        frontend.subscribe(ParticipantStatus.subject, heard.put_nowait)
        await frontend.ready()
        telling = asyncio.create_task(Announcer(own).run(cast(Supervisor, children), cast(ParticipantReloader, None)))
        await heard.get()
        while not heard.empty():
            heard.get_nowait()
        for call in own.on_reconnect:
            call()
        async with asyncio.timeout(5):
            await heard.get()
        telling.cancel()
