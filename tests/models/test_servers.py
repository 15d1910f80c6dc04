"""A model server of ours from what it takes to its end, played by a program that behaves like llama-server."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.core.errors import ConfigError
from local.core.routing import Provider
from local.models import guard
from local.models.servers import (
    LogFile,
    ModelServerFailed,
    ServerProcess,
    ServerSpec,
    context_length,
    llama_server_spec,
    ollama_spec,
    require_build,
    serve,
)
from tests.models.llama_cpp.tiny_gguf import write_tiny_gguf

FAKE_LLAMA_SERVER = """
import http.server, json, os, pathlib, signal, subprocess, sys, threading

arguments = sys.argv[1:]
port = int(arguments[arguments.index("--port") + 1])
folder = pathlib.Path(arguments[arguments.index("--model") + 1]).parent
manners = arguments[arguments.index("--fake") + 1].split(",")
(folder / "pid.part").write_text(str(os.getpid()))
(folder / "pid.part").rename(folder / "pid")  # whoever finds it can read it
print("build: fake", " ".join(arguments), flush=True)
if "crash" in manners:
    print("error: failed to load model", flush=True)
    sys.exit(1)
if "deaf" in manners:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in manners:
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    (folder / "child").write_text(str(child.pid))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if "slow" in manners and not (folder / "loaded").exists():
            (folder / "asked").touch()
            return self.answer(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
        if (folder / "mute").exists():
            return None
        if self.path == "/props":
            return self.answer(200, {"build_info": "b8600-abc" if "old" in manners else "b8665-abc"})
        self.answer(200, {"status": "ok"})

    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the fake, its model and what it leaves behind lie."""
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable} -S\n{FAKE_LLAMA_SERVER}")
    program.chmod(0o755)
    (tmp_path / "tiny-1b.gguf").write_bytes(b"GGUF")
    return tmp_path


@pytest.fixture
def llama_server(folder: Path) -> Callable[..., ServerSpec]:
    """What it takes to run the fake with these manners."""

    def spec(*manners: str, **settings: object) -> ServerSpec:
        provider = Provider(
            kind="llama_server",
            program=str(folder / "llama-server"),
            model=folder / "tiny-1b.gguf",
            args=("--fake", ",".join(manners)),
            **settings,
        )
        return llama_server_spec("llama_server", provider)

    return spec


# What it takes to run one, or why it cannot be


def test_ollama_is_told_where_to_listen() -> None:
    spec = ollama_spec("ollama", "/bin/ollama", "http://127.0.0.1:11434")
    assert (spec.command, dict(spec.variables)) == (("/bin/ollama", "serve"), {"OLLAMA_HOST": "127.0.0.1:11434"})


def test_llama_server_gets_its_model_a_port_and_what_the_user_adds(folder: Path) -> None:
    provider = Provider(
        kind="llama_server", program=str(folder / "llama-server"), model=folder / "tiny-1b.gguf", args=("-ngl", "99")
    )
    spec = llama_server_spec("box", provider)
    port = spec.url.rpartition(":")[2]
    command = " ".join(spec.command[1:])
    assert command.startswith(f"--model {folder}/tiny-1b.gguf --alias tiny-1b --host 127.0.0.1 --port {port} ")
    assert command.endswith(" -ngl 99")
    assert int(port) > 0 and spec.minimum_build == 8665
    assert llama_server_spec("box", provider.model_copy(update={"port": 8123})).url == "http://127.0.0.1:8123"


def box(folder: Path, *args: str) -> ServerSpec:
    program, model = str(folder / "llama-server"), folder / "tiny-1b.gguf"
    return llama_server_spec("box", Provider(kind="llama_server", program=program, model=model, args=args))


def values(spec: ServerSpec, option: str) -> list[str]:
    return [value for name, value in pairwise(spec.command) if name == option]


def test_a_server_can_stop_soon_and_keeps_a_bounded_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    spec = box(folder)
    assert values(spec, "--batch-size") == values(spec, "--ubatch-size") != []
    assert int(values(spec, "--batch-size")[0]) <= 512
    assert spec.cache_mib == "1024"
    assert spec.variables["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert "OMP_WAIT_POLICY" not in box(folder).variables


@pytest.mark.parametrize("args", [("--cache-ram", "0"), ("--cache-ram=0",), ("-cram", "0")])
def test_the_owner_s_arguments_override_ours(folder: Path, args: tuple[str, ...]) -> None:
    assert box(folder, *args).cache_mib == "0"
    assert values(box(folder, "--ctx-size", "512"), "--ctx-size")[-1] == "512"


def test_texts_are_embedded_in_batches_of_the_server_s_own_size(folder: Path) -> None:
    assert values(box(folder, "--embeddings"), "--ubatch-size") == []


@pytest.mark.parametrize(("trained", "expected"), [(2_048, "2048"), (131_072, "32000")])
def test_the_context_is_at_most_what_the_model_has(folder: Path, trained: int, expected: str) -> None:
    write_tiny_gguf(folder / "tiny-1b.gguf", context_length=trained)
    assert values(box(folder), "--ctx-size") == [expected]
    assert context_length(folder / "tiny-1b.gguf") == trained


def test_a_file_that_is_cut_off_or_lies_about_its_lengths_says_nothing_of_its_context(folder: Path) -> None:
    file = write_tiny_gguf(folder / "tiny-1b.gguf")
    whole = file.read_bytes()
    lies = b"GGUF" + struct.pack("<IQQ", 3, 0, 5) + struct.pack("<Q", 2**62)
    for content in (*(whole[:keep] for keep in (0, 3, 20, 24, 60)), lies):
        file.write_bytes(content)
        assert context_length(file) is None and values(box(folder), "--ctx-size") == ["32000"]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"program": "/nowhere/llama-server"}, "there is no program /nowhere/llama-server: install llama.cpp"),
        ({"model": None}, "llama-server needs a model: write the path of a GGUF file as providers.box.model"),
        ({"model": Path("/nowhere.gguf")}, "there is no file /nowhere.gguf; correct providers.box.model"),
    ],
)
def test_what_is_missing_is_named_with_the_key_that_says_where_it_is(
    folder: Path, settings: dict[str, object], complaint: str
) -> None:
    given = {"program": str(folder / "llama-server"), "model": folder / "tiny-1b.gguf"} | settings
    with pytest.raises(ConfigError, match=complaint):
        llama_server_spec("box", Provider(kind="llama_server", **given))


# From its start to its end

SECONDS = 90.0
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
    log = (folder / "logs" / "llama_server.log").read_text()
    assert log.startswith("build: fake --model") and "--alias tiny-1b --host 127.0.0.1 --port" in log


async def test_one_that_cannot_load_its_model_fails_with_its_last_words(
    llama_server: Callable[..., ServerSpec], folder: Path
) -> None:
    async with running(llama_server("crash"), folder) as server:
        with pytest.raises(ModelServerFailed) as caught:
            await server.outcome()
    assert "llama_server ended with status 1; it said last: " in str(caught.value)
    assert "error: failed to load model" in str(caught.value)
    assert str(folder / "logs" / "llama_server.log") in str(caught.value)


async def test_one_that_dies_later_is_a_failure_too_and_takes_what_it_has_started_along(
    llama_server: Callable[..., ServerSpec], folder: Path, until: Until
) -> None:
    async with running(llama_server("child"), folder) as server:
        await server.until_ready()
        child = server.process("child")
        server.process().kill()
        with pytest.raises(ModelServerFailed, match="was killed by SIGKILL"):
            await server.outcome()
        await until(lambda: has_ended(child))


async def test_an_old_build_is_refused_and_ended(
    llama_server: Callable[..., ServerSpec], folder: Path, until: Until
) -> None:
    async with running(llama_server("old"), folder) as server:
        with pytest.raises(ConfigError, match=r"is build b8600-abc, and b8665 is asked for. Gemma 4 needs b8665"):
            await server.outcome()
        assert not server.ready.is_set()
        await until(lambda: not psutil.pid_exists(int((folder / "pid").read_text())))


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


async def test_it_ends_with_the_process_that_runs_it_even_if_that_is_killed(
    llama_server: Callable[..., ServerSpec], folder: Path, until: Until
) -> None:
    program = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()"
    guarded = (sys.executable, "-I", "-S", str(Path(guard.__file__)), "5", *llama_server("child").command)
    runner = await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", "-c", program, *guarded)
    await until((folder / "child").exists)
    await until(lambda: (folder / "child").read_text())
    processes = [psutil.Process(int((folder / name).read_text())) for name in ("pid", "child")]
    runner.kill()
    await runner.wait()
    await until(lambda: all(map(has_ended, processes)))


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
    with pytest.raises(ConfigError, match="reports no build of llama-server"):
        require_build(llama_server(), props)


def test_a_log_is_bounded_and_what_was_said_before_is_kept_once(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "logs" / "x.log", max_bytes=10)
    for line in (b"one\n", b"two\n", b"three\n", b"four\n"):
        log.write(line)
    assert (tmp_path / "logs" / "x.log").read_text() == "four\n"
    assert (tmp_path / "logs" / "x.log.1").read_text() == "three\n"
    assert log.last_words == "two | three | four"
