"""Users ask a cell while one machine after the other is lost: all processes killed, and the data directory removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from chaos_harness.evidence import gather
from chaos_harness.history import Asked
from chaos_harness.judge import Violation, judge
from chaos_harness.load import Users, ask_as_many_users, client_of
from chaos_harness.system import FOR_EVER, ChaosSystem
from local.core.data_dir import NotRunning, RunDirectory
from tests.nats_cluster import Cluster, free_ports

PATIENCE = 120.0
MODEL_SECONDS = 0.3
LOOK_SECONDS = 0.1
OK = 200


class Machine:
    """A machine of the cell: a process of `local2 run` in a session of its own, and its data directory."""

    def __init__(self, number: int, folder: Path, config: Path, port: int) -> None:
        self.data_dir, self.log = folder / f"machine-{number}", folder / f"machine-{number}.log"
        arguments = ["run", "--headless", "--api", "--api-port", str(port), "--data-dir", str(self.data_dir)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "local.cli.entry", *arguments, "--config-dir", config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getsid(process.pid) == self._process.pid:
                    found.append(process)
        return found

    async def slow_down(self) -> None:
        """Have its model take a while, so that turns are under way when it is lost."""
        slow = {"kind": "first_token_delay", "seconds": MODEL_SECONDS, "times": FOR_EVER}
        async with httpx.AsyncClient(trust_env=False) as http:
            while True:
                with suppress(NotRunning):  # it is about to say where
                    model = RunDirectory(self.data_dir).read().model_url
                    (await http.post(f"{model}/stand_in/fault", json=slow)).raise_for_status()
                    return
                if self._process.poll() is not None:
                    raise AssertionError(f"a machine has ended: {self.log.read_text()}")
                await asyncio.sleep(LOOK_SECONDS)

    def lose(self) -> None:
        """Kill all of its processes, and remove its data."""
        self._process.kill()
        while running := [each for each in self.processes() if each.status() != psutil.STATUS_ZOMBIE]:
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(running, timeout=1)
        self._process.wait()
        shutil.rmtree(self.data_dir, ignore_errors=True)


class Machines:
    """A cell on three NATS servers: one machine runs it, another one stands by. Enter it with `running`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.cluster = folder, Cluster(folder / "servers")
        self.system = ChaosSystem(folder / "system", log=self.cluster.address("cell"))
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self._started: list[Machine] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With everything started."""
        for number in range(3):
            self.cluster.start(number)
        try:
            await self.cluster.ready()
            self.start()
            await self.answers()
            await self._started[-1].slow_down()
            self.start()
            yield
        finally:
            for machine in self._started:
                await asyncio.to_thread(machine.lose)
            self.cluster.stop()

    def start(self) -> None:
        """Start another machine."""
        self._started.append(Machine(len(self._started), self._folder, self.system.config, self._port))

    async def lose(self) -> float:
        """Lose the machine that runs the cell, and start another one; returns the seconds until the next one serves."""
        await asyncio.to_thread(self._started[-2].lose)
        began = time.monotonic()
        self.start()
        await self.answers()
        seconds = time.monotonic() - began
        await self._started[-2].slow_down()
        return seconds

    async def answers(self) -> None:
        """Wait until the cell serves."""
        async with httpx.AsyncClient(base_url=self.url, timeout=5, trust_env=False) as http:
            while True:
                with suppress(httpx.TransportError):
                    if (await http.get("/sessions")).status_code == OK:
                        return
                await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class CellResult:
    """What a run was and what was found; `waits` are the seconds from each loss until the next machine served."""

    asked: list[Asked]
    waits: list[float]
    violations: list[Violation]
    effects: int


async def cell_chaos(machines: Machines, users: Users, *, every: float, takeovers: int, queries: int) -> CellResult:
    """Lose so many machines, one every so many seconds of service, while users ask so many queries at least."""
    asked: list[Asked] = []
    waits: list[float] = []

    def goes_on(number: int) -> bool:
        return len(asked) < queries or len(waits) < takeovers

    async def lose() -> None:
        for _ in range(takeovers):
            await asyncio.sleep(every)
            waits.append(await machines.lose())

    async with client_of(machines.url, PATIENCE) as client:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(lose(), name="losses")
            await ask_as_many_users(client, users, goes_on, asked.append)
        evidence = await gather(machines.system, client, asked)
        return CellResult(asked, waits, judge(evidence), len(evidence.effects))
