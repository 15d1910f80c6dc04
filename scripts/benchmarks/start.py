"""A cold start with the README's command, and what the system weighs when it is up.

The baselines are a process that only imports the packages we stand on, and as many of those as we have processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from benchmarks.cpu_time import proportional_bytes
from benchmarks.figure import BenchmarkFailed, Figure, alternate
from benchmarks.local_server import free_port

ROUNDS = 5
START_SECONDS = 30.0
LOOK_SECONDS = 0.005
RUN_LOCAL = Path(__file__).resolve().parents[1] / "run_local.py"
IMPORTS = "import zmq, pydantic, fastapi, uvicorn, httpx, typer, trafilatura; print(flush=True); input()"
MB = 1e6

Weights = dict[str, float]


async def run() -> list[Figure]:
    """Starts take turns with the baseline's."""
    await alternate(1, _start, _import)  # to warm up
    ours, imports = await alternate(ROUNDS, _start, _import)
    weights = ours[-1][1]
    imported = imports[-1][1]["imports"]
    return [
        Figure("start: to /health ok", median(seconds for seconds, _ in ours), "s",
               median(seconds for seconds, _ in imports), limit=1),
        Figure("start: all processes, PSS", sum(weights.values()), "MB", imported * len(weights), limit=220),
        *(Figure(f"start:   {name}", weight, "MB") for name, weight in weights.items()),
    ]  # fmt: skip


async def _start() -> tuple[float, Weights]:
    with tempfile.TemporaryDirectory(prefix="bench-") as data_dir:
        port = free_port()
        command = [_base_python(), str(RUN_LOCAL), "--headless", "--api", "--backend", "stand_in"]
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *command, "--api-port", str(port), "--data-dir", data_dir, stderr=DEVNULL, env=_bare()
        )
        try:
            health = await _healthy(f"http://127.0.0.1:{port}/health", process)
            return time.perf_counter() - started, _weights(process.pid, health)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def _healthy(url: str, process: Process) -> dict[str, Any]:
    deadline = time.monotonic() + START_SECONDS
    async with httpx.AsyncClient(trust_env=False, timeout=START_SECONDS) as client:
        while process.returncode is None and time.monotonic() < deadline:
            try:
                health: dict[str, Any] = (await client.get(url)).json()
                if health["status"] == "ok":
                    return health
            except httpx.TransportError:
                pass  # nobody listens yet
            await asyncio.sleep(LOOK_SECONDS)
    raise BenchmarkFailed(f"the system was not healthy within {START_SECONDS:g} s")


def _weights(root: int, health: dict[str, Any]) -> Weights:
    names = {participant["pid"]: participant["name"] for participant in health["participants"]}
    names[root] = "supervisor"
    processes = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
    return {
        f"{names.get(process.pid, process.name())} ({process.pid})": proportional_bytes(process.pid) / MB
        for process in processes
    }


async def _import() -> tuple[float, Weights]:
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", IMPORTS, stdin=PIPE, stdout=PIPE, env=_bare())
    assert process.stdout is not None, "it was asked for"
    await process.stdout.readline()
    seconds = time.perf_counter() - started
    weight = proportional_bytes(process.pid) / MB
    await process.communicate(b"\n")
    return seconds, {"imports": weight}


def _bare() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LOCAL2_", "OLLAMA_"))}


def _base_python() -> str:
    """What a user types as `python3`; the script then enters the environment by itself."""
    return str(Path(sys.base_prefix) / "bin" / "python3")
