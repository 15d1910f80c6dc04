"""How soon it goes on: each process of the system is killed under load, and the next answer is waited for."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import httpx

from benchmarks.figure import BenchmarkFailed, Figure
from local.bus.bus import Bus
from local.bus.zeromq import ZeroMQTransport
from local.cli.temporary_system import TemporarySystem, write_settings
from local.core.data_dir import RunDirectory
from local.core.errors import LocalError

ROUNDS = 5
PAUSE_SECONDS = 4.0  # so that a process does not die five times in the three seconds after it was ready
RETRY_SECONDS = 0.01  # as a client would, only sooner, so that the figure is the system's
CLIENTS = 4
LIMIT_SECONDS = 30.0
QUERY = {"query": "What is 6 times 7?"}


class _Clients:
    """Ask without pause, again with the same id where the connection breaks. `answers` are the times of all answers."""

    def __init__(self, url: str) -> None:
        self.client = httpx.AsyncClient(base_url=url, timeout=LIMIT_SECONDS, trust_env=False)
        self.answers: list[float] = []

    async def keep_asking(self) -> None:
        """Until cancelled."""
        while True:
            await self.ask()

    async def ask(self) -> float:
        """One answer; gives the time when it came."""
        body = {**QUERY, "query_id": uuid4().hex}
        while True:
            with suppress(httpx.TransportError):
                response = await self.client.post("/query", json=body)
                if response.status_code == 200:
                    self.answers.append(time.monotonic())
                    return self.answers[-1]
            await asyncio.sleep(RETRY_SECONDS)

    async def pids(self) -> dict[str, int]:
        """The process of each participant."""
        health: dict[str, Any] = (await self.client.get("/health")).json()
        return {child["name"]: child["pid"] for child in health["participants"] if child["pid"] is not None}


async def run() -> list[Figure]:
    """Kill each of them a few times."""
    figures = []
    async with _system() as (clients, delivered):
        load = [asyncio.create_task(clients.keep_asking()) for _ in range(CLIENTS)]
        names = sorted((await clients.pids()).keys() - {"stand_in", "web_fetch"})
        for name in names:
            seconds = [await _kill(name, clients, delivered) for _ in range(ROUNDS)]
            limit = 1.0
            figures.append(
                Figure(f"recovery: {name} killed, next answer", median(each for each, _ in seconds), "s", limit=limit)
            )
            if name == "proxy":
                gap = median(each for _, each in seconds) * 1e3
                figures.append(Figure("recovery: proxy killed, next delivery", gap, "ms", limit=150))
        for task in load:
            task.cancel()
    return figures


async def _kill(name: str, clients: _Clients, delivered: list[float]) -> tuple[float, float]:
    """Seconds from the kill to the answer of the next query, and to the next message on the bus."""
    await asyncio.sleep(PAUSE_SECONDS)
    pid = (await clients.pids())[name]
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    answered = await asyncio.wait_for(clients.ask(), LIMIT_SECONDS)
    later = [when for when in delivered if when > killed + 0.01]  # what was in the sockets still comes
    return answered - killed, (later[0] if later else answered) - killed


@asynccontextmanager
async def _system() -> AsyncIterator[tuple[_Clients, list[float]]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        config = write_settings(Path(name) / "config", {"system": {"backend": "stand_in"}})
        system = TemporarySystem(Path(name) / "data", config_dir=config, flags=["--log-level", "error"])
        try:
            await asyncio.to_thread(system.__enter__)
        except LocalError as error:
            raise BenchmarkFailed(str(error)) from None
        delivered: list[float] = []
        address = RunDirectory(system.data_dir).running_bus()
        try:
            async with Bus("bench_listener", ZeroMQTransport(address)) as bus:
                bus.subscribe("", lambda envelope: delivered.append(time.monotonic()))
                await bus.ready()
                clients = _Clients(system.api_url)
                yield clients, delivered
                await clients.client.aclose()
        finally:
            await asyncio.to_thread(system.__exit__, None, None, None)
