"""The durable peer of a turn, `langgraph_peer.py`, in a virtual environment of its own that is made once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import venv
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import platformdirs

from benchmarks.figure import BenchmarkFailed
from benchmarks.local_server import client_of, free_port

PROGRAM = Path(__file__).with_name("langgraph_peer.py")
PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "aiosqlite", "fastapi", "uvicorn", "httpx")
ENVIRONMENT = platformdirs.user_cache_path("local2") / "durable-peer"
PYTHON, FINISHED = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "finished"
UV = Path(sys.executable).with_name("uv")
START_SECONDS, LOOK_SECONDS = 30.0, 0.05

Ask = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def durable_peer(model_url: str) -> AsyncIterator[Ask]:
    """Start it on a database of its own; gives what asks it. Raises `BenchmarkFailed`."""
    await asyncio.to_thread(_make_environment)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        port = free_port()
        variables = {**os.environ, "OLLAMA_HOST": model_url, "PEER_DB": f"{folder}/peer.db"}
        process = await asyncio.create_subprocess_exec(PYTHON, PROGRAM, str(port), env=variables)
        try:
            async with client_of(f"http://127.0.0.1:{port}") as client:
                await _until_it_listens(client, process)
                yield lambda query: _ask(client, query)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _ask(client: httpx.AsyncClient, query: str) -> str:
    answer: str = (await client.post("/query", json={"query": query})).raise_for_status().json()["answer"]
    return answer


async def _until_it_listens(client: httpx.AsyncClient, process: Process) -> None:
    try:
        async with asyncio.timeout(START_SECONDS):
            while process.returncode is None:
                try:
                    await client.get("/openapi.json")
                    return
                except httpx.TransportError:
                    await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        pass
    raise BenchmarkFailed(f"the durable peer does not listen; {ENVIRONMENT} is made anew once it is removed")


def _make_environment() -> None:
    if FINISHED.exists():
        return
    print(f"making {ENVIRONMENT} for the durable peer, once", file=sys.stderr)
    venv.EnvBuilder(clear=True, with_pip=not UV.exists()).create(ENVIRONMENT)
    pip = [UV, "pip", "install", "--python", PYTHON] if UV.exists() else [PYTHON, "-m", "pip", "install"]
    settings = {**os.environ, "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    folder = ENVIRONMENT  # not ours: uv would leave out what our own packages do not need
    command = [*map(str, pip), "--quiet", *PACKAGES]
    done = subprocess.run(command, cwd=folder, env=settings, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BenchmarkFailed(f"the packages of the durable peer cannot be installed: {done.stderr.strip()[-300:]}")
    FINISHED.touch()
