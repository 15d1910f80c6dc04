"""The system as a user starts it, on the model server without a model, and the bare loop on the same server."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.bare_loop import BareLoop
from benchmarks.figure import BenchmarkFailed
from benchmarks.model_server import MODEL, serve
from benchmarks.peer import Peer
from local.apps.temporary_system import TemporarySystem, write_settings
from local.errors import LocalError

SCRIPTS = Path(__file__).resolve().parents[1]
PARTICIPANTS = ["generator", "web_search", "web_fetch", "benchmarks.instant_tool:InstantTool"]
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class WholeSystem:
    """`client` speaks to the system's API over kept-alive connections, `bare` to the model server."""

    client: httpx.AsyncClient
    bare: BareLoop

    async def ask(self, query: str) -> str:
        """The answer of POST /query, as the first of a new session. Raises `BenchmarkFailed`."""
        response = await self.client.post("/query", json={"query": query})
        if response.is_error:
            raise BenchmarkFailed(f"POST /query: HTTP {response.status_code}: {response.text[:200]}")
        answer: str = response.json()["answer"]
        return answer

    async def pids(self) -> dict[str, int]:
        """The process of each participant."""
        participants: list[dict[str, Any]] = (await self.client.get("/health")).json()["participants"]
        return {participant["name"]: participant["pid"] for participant in participants}


def order(**what: Any) -> str:
    """A query that tells the model server what to do."""
    return " ".join(f"{key}={value}" for key, value in what.items())


@asynccontextmanager
async def whole_system() -> AsyncIterator[WholeSystem]:
    """Start everything, stop everything. Raises `BenchmarkFailed`."""
    async with (
        Peer(serve) as model,
        client_of(model.greeting) as bare,
        running(_settings(model.greeting)) as url,
        client_of(url) as client,
    ):
        yield WholeSystem(client, BareLoop(bare))


@asynccontextmanager
async def running(settings: Mapping[str, Mapping[str, Any]], *flags: str) -> AsyncIterator[str]:
    """A system with these settings, by file and key; gives the address of its API. Raises `BenchmarkFailed`."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        config = write_settings(Path(name) / "config", settings)
        system = TemporarySystem(Path(name) / "data", config_dir=config, flags=["--log-level", "warning", *flags])
        try:
            await asyncio.to_thread(system.__enter__)
        except LocalError as error:
            raise BenchmarkFailed(str(error)) from None
        try:
            yield system.api_url
        finally:
            await asyncio.to_thread(system.__exit__, None, None, None)


def _settings(model_url: str) -> dict[str, dict[str, Any]]:
    return {
        "system": {
            "backend": "ollama",
            "ollama_url": model_url,
            "python_path": [str(SCRIPTS)],
            "participants": PARTICIPANTS,
        },
        "generator": {"model": MODEL, "think": False},
    }


def client_of(url: str) -> httpx.AsyncClient:
    """A client of a server on this machine."""
    return httpx.AsyncClient(base_url=url, timeout=SECONDS, trust_env=False)
