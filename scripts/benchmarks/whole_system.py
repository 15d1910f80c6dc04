"""The system as a user starts it, on the model server without a model, and the bare loop on the same server."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.bare_loop import BareLoop
from benchmarks.figure import BenchmarkFailed
from benchmarks.local_server import client_of
from benchmarks.model_server import MODEL, serve
from benchmarks.peer import Peer
from local.cli.temporary_system import TemporarySystem, write_settings
from local.core.errors import LocalError

Settings = Mapping[str, Mapping[str, Any]]

SCRIPTS = Path(__file__).resolve().parents[1]
INSTANT_TOOL = "benchmarks.instant_tool:InstantTool"
FEW: Settings = {
    "system": {"participants": ["generator", "web_search", "web_fetch", INSTANT_TOOL]},
    "generator": {"model": MODEL, "think": False},
}  # who answers, and nobody who observes
DEFAULT: Settings = {}  # as it comes


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, answered. `posted` and `answered` are seconds since 1970."""

    query_id: str
    answer: str
    posted: float
    answered: float


@dataclass(frozen=True, slots=True)
class WholeSystem:
    """`client` speaks to the system's API over kept-alive connections, `models` to the model server, as `bare` does."""

    client: httpx.AsyncClient
    models: httpx.AsyncClient
    bare: BareLoop
    model_url: str
    system: TemporarySystem

    async def ask(self, query: str) -> str:
        """The answer of POST /query, as the first of a new session. Raises `BenchmarkFailed`."""
        return (await self.timed(query)).answer

    async def timed(self, query: str) -> Asked:
        """A question as `ask` asks it, with the times of question and answer."""
        posted = time.time()
        response = await self.client.post("/query", json={"query": query})
        answered = time.time()
        if response.is_error:
            raise BenchmarkFailed(f"POST /query: HTTP {response.status_code}: {response.text[:200]}")
        said = response.json()
        return Asked(said["query_id"], said["answer"], posted, answered)

    async def model_log(self) -> dict[str, float]:
        """When the model server has first heard each query, in seconds since 1970; each is told once."""
        asked: list[tuple[str, float]] = (await self.models.get("/log")).json()["asked"]
        return dict(reversed(asked))

    async def pids(self) -> dict[str, int]:
        """The process of each participant."""
        participants: list[dict[str, Any]] = (await self.client.get("/health")).json()["participants"]
        return {participant["name"]: participant["pid"] for participant in participants}

    async def processes(self) -> dict[int, str]:
        """Every process of the system, with its name, or that of the first participant in it."""
        supervisor = psutil.Process(self.system.process.pid)
        names = {supervisor.pid: "supervisor"}
        for name, pid in (await self.pids()).items():
            names[pid] = f"{names[pid].partition(' ')[0]} and others" if pid in names else name
        running = [supervisor, *supervisor.children(recursive=True)]
        return {process.pid: names.get(process.pid, process.name()) for process in running}


def order(**what: Any) -> str:
    """A query that tells the model server what to do."""
    return " ".join(f"{key}={value}" for key, value in what.items())


@asynccontextmanager
async def whole_system(settings: Settings = FEW) -> AsyncIterator[WholeSystem]:
    """Start everything, stop everything. Raises `BenchmarkFailed`."""
    async with (
        Peer(serve) as model,
        client_of(model.greeting) as models,
        temporary_system(_complete(settings, model.greeting)) as system,
        client_of(system.api_url) as client,
    ):
        yield WholeSystem(client, models, BareLoop(models), model.greeting, system)


@asynccontextmanager
async def running(settings: Settings, *flags: str) -> AsyncIterator[str]:
    """A system with these settings, by file and key; gives the address of its API. Raises `BenchmarkFailed`."""
    async with temporary_system(settings, *flags) as system:
        yield system.api_url


@asynccontextmanager
async def temporary_system(settings: Settings, *flags: str) -> AsyncIterator[TemporarySystem]:
    """A system with these settings, by file and key. Raises `BenchmarkFailed`."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        config = write_settings(Path(name) / "config", settings)
        system = TemporarySystem(Path(name) / "data", config_dir=config, flags=["--log-level", "warning", *flags])
        try:
            await asyncio.to_thread(system.__enter__)
        except LocalError as error:
            raise BenchmarkFailed(str(error)) from None
        try:
            yield system
        finally:
            await asyncio.to_thread(system.__exit__, None, None, None)


def _complete(settings: Settings, model_url: str) -> dict[str, Mapping[str, Any]]:
    system = {"backend": "ollama", "ollama_url": model_url, "python_path": [str(SCRIPTS)]}
    arbiter = {"quiet_seconds": 0, **settings.get("arbiter", {})}  # observers work at once, as they did before
    return {**settings, "system": {**system, **settings.get("system", {})}, "arbiter": arbiter}
