"""A model server of ours from its start to its end, played by a program that behaves like llama-server."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.core.errors import ConfigError
from local.models.servers import LogFile, ModelServerFailed, ServerProcess, ServerSpec, require_build, serve

SECONDS = 30.0
Until = Callable[[Callable[[], object]], Any]


class Running:
    """A server that is being run."""

    def __init__(self, spec: ServerSpec, folder: Path, **how: float) -> None:
        self.stop, self.ready = asyncio.Event(), asyncio.Event()
        self.folder = folder
        self.task = asyncio.create_task(serve(spec, folder / "logs", self.stop, self.ready.set, **how))

    async def until_ready(self) -> None:
        ready = asyncio.create_task(self.ready.wait())
        await asyncio.wait({ready, self.task}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        assert self.ready.is_set(), self.task

    async def outcome(self) -> None:
        await asyncio.wait_for(self.task, SECONDS)

    def process(self, name: str = "pid") -> psutil.Process:
        return psutil.Process(int((self.folder / name).read_text()))


@asynccontextmanager
async def running(spec: ServerSpec, folder: Path, **how: float) -> AsyncIterator[Running]:
    server = Running(spec, folder, **how)
    yield server
    server.stop.set()
    await asyncio.wait({server.task}, timeout=SECONDS)


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_it_is_ready_when_the_model_is_loaded_and_ends_when_asked_to(
    llama_server: Callable[..., ServerSpec], folder: Path, until: Until
) -> None:
    async with running(llama_server("slow", "child"), folder) as server:
        await until((folder / "asked").exists)
        assert not server.ready.is_set()
        (folder / "loaded").touch()
        await server.until_ready()
        processes = [server.process(), server.process("child")]
    await server.outcome()
    await until(lambda: all(map(has_ended, processes)))


async def test_what_it_says_is_kept(llama_server: Callable[..., ServerSpec], folder: Path) -> None:
    async with running(llama_server(), folder) as server:
        await server.until_ready()
    log = (folder / "logs" / "llama_server.log").read_text()
    assert log.startswith("build: fake --model")
    assert "--alias tiny-1b --host 127.0.0.1 --port" in log


async def test_one_that_cannot_load_its_model_fails_with_its_last_words(
    llama_server: Callable[..., ServerSpec], folder: Path
) -> None:
    async with running(llama_server("crash"), folder) as server:
        with pytest.raises(ModelServerFailed) as caught:
            await server.outcome()
    assert "llama_server ended with status 1; it said last: " in str(caught.value)
    assert "error: failed to load model" in str(caught.value)
    assert str(folder / "logs" / "llama_server.log") in str(caught.value)


async def test_one_that_dies_later_is_a_failure_too(llama_server: Callable[..., ServerSpec], folder: Path) -> None:
    async with running(llama_server(), folder) as server:
        await server.until_ready()
        server.process().kill()
        with pytest.raises(ModelServerFailed, match="was killed by SIGKILL"):
            await server.outcome()


async def test_an_old_build_is_refused_and_ended(
    llama_server: Callable[..., ServerSpec], folder: Path, until: Until
) -> None:
    async with running(llama_server("old"), folder) as server:
        with pytest.raises(ConfigError, match=r"is build b8600-abc, and b8665 is asked for. Gemma 4 needs b8665"):
            await server.outcome()
        assert not server.ready.is_set()
        await until(lambda: not psutil.pid_exists(int((folder / "pid").read_text())))


async def test_an_old_build_may_be_asked_for(llama_server: Callable[..., ServerSpec], folder: Path) -> None:
    async with running(llama_server("old", minimum_build=8000), folder) as server:
        await server.until_ready()


async def test_a_port_that_is_taken_is_a_failure_before_anything_is_started(
    llama_server: Callable[..., ServerSpec], folder: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with running(llama_server(port=taken.getsockname()[1]), folder) as server:
            with pytest.raises(ModelServerFailed, match=r"cannot listen at http://127.0.0.1:\d+: Address already"):
                await server.outcome()
    assert not (folder / "pid").exists()


async def test_a_model_that_takes_too_long_to_load_is_a_failure(
    llama_server: Callable[..., ServerSpec], folder: Path
) -> None:
    async with running(llama_server("slow", start_seconds=0.01), folder) as server:
        with pytest.raises(ModelServerFailed, match=r"not ready within 0.01 s; see start_seconds"):
            await server.outcome()


async def test_one_that_answers_no_more_is_a_failure(llama_server: Callable[..., ServerSpec], folder: Path) -> None:
    async with running(llama_server(), folder, watch_seconds=0.01, hang_seconds=0.05) as server:
        await server.until_ready()
        (folder / "mute").touch()
        with pytest.raises(ModelServerFailed, match=r"has not answered at http://127.0.0.1:\d+ for 0.05 s"):
            await server.outcome()


async def test_a_deaf_one_is_killed(llama_server: Callable[..., ServerSpec], folder: Path, until: Until) -> None:
    spec = llama_server("deaf")
    async with (
        ServerProcess(spec, LogFile(folder / "log"), grace_seconds=0.2),
        httpx.AsyncClient(base_url=spec.url, trust_env=False) as client,
    ):
        await until((folder / "pid").exists)
        process = psutil.Process(int((folder / "pid").read_text()))
        while True:
            try:
                assert (await client.get("/health")).status_code == 200
                break
            except httpx.TransportError:
                await asyncio.sleep(0.01)  # it starts
    assert has_ended(process)


async def test_it_ends_with_whoever_runs_it_even_if_that_is_killed(
    llama_server: Callable[..., ServerSpec], folder: Path, until: Until
) -> None:
    program = """
import asyncio, pathlib, sys
from local.models.servers import serve
from local.models.servers import ServerSpec
folder = pathlib.Path(sys.argv[1])
spec = ServerSpec("x", tuple(sys.argv[3:]), sys.argv[2], "/health", 30)
asyncio.run(serve(spec, folder, asyncio.Event(), (folder / "is_ready").touch))
"""
    spec = llama_server()
    runner = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(folder), spec.url, *spec.command)
    await until((folder / "is_ready").exists)
    server = psutil.Process(int((folder / "pid").read_text()))
    runner.kill()
    await runner.wait()
    await until(lambda: has_ended(server))


async def test_signals_to_the_group_of_the_system_do_not_reach_it_before_its_turn(
    llama_server: Callable[..., ServerSpec], folder: Path
) -> None:
    spec = llama_server()
    async with running(spec, folder) as server, httpx.AsyncClient(base_url=spec.url, trust_env=False) as client:
        await server.until_ready()
        guard = server.process().parent()
        assert guard is not None
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            guard.send_signal(number)
        assert (await client.get("/health")).status_code == 200
        assert not has_ended(guard)
        assert psutil.Process().pid not in (os.getpgid(guard.pid), os.getpgid(server.process().pid))


async def test_a_program_that_cannot_be_run_says_so(folder: Path) -> None:
    (folder / "nonsense").write_text("no program")
    (folder / "nonsense").chmod(0o755)
    spec = ServerSpec("x", (str(folder / "nonsense"),), "http://127.0.0.1:1", "/health", 30)
    async with running(replace(spec, url=_free_url()), folder) as server:
        with pytest.raises(ModelServerFailed, match=r"cannot run .*nonsense: Exec format error"):
            await server.outcome()


def _free_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("props", [{"build_info": "custom"}, {}, [], None])
def test_a_server_that_tells_no_build_is_refused(llama_server: Callable[..., ServerSpec], props: Any) -> None:
    with pytest.raises(ConfigError, match="tells no build of llama-server"):
        require_build(llama_server(), props)


def test_a_log_is_bounded_and_what_was_said_before_is_kept_once(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "logs" / "x.log", max_bytes=10)
    for line in (b"one\n", b"two\n", b"three\n", b"four\n"):
        log.write(line)
    assert (tmp_path / "logs" / "x.log").read_text() == "four\n"
    assert (tmp_path / "logs" / "x.log.1").read_text() == "three\n"
    assert log.last_words == "two | three | four"
