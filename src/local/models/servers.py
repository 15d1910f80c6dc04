"""The requirements of a model server, decided before anything is started. Imports next to nothing."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
import shutil
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self
from urllib.parse import urlsplit

import httpx

from local.core.environment import environment_with, is_set
from local.core.errors import ConfigError, LocalError
from local.core.routing import CACHE, CACHE_MIB, Provider, option
from local.models import guard

# What the header of a GGUF file says of its model. Reads the beginning of the file, never the weights.

_MAGIC = b"GGUF"
_ARRAY, _STRING = 9, 8
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes, by the number of a type
_INTEGERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_MOST_KEYS, _MOST_BYTES = 10_000, 64 * 1024 * 1024


def context_length(path: Path) -> int | None:
    """Return the model's trained context length in tokens; None if the file does not contain it, or is not GGUF."""
    try:
        with path.open("rb") as file:
            return _find(file, ".context_length")
    except (OSError, struct.error, ValueError):
        return None


def _find(file: BinaryIO, ending: str) -> int | None:
    if file.read(4) != _MAGIC:
        return None
    version, _, keys = struct.unpack("<IQQ", file.read(20))
    if version < 2 or keys > _MOST_KEYS:
        return None
    for _ in range(keys):
        key = file.read(_length(file)).decode("utf-8", "replace")
        (kind,) = struct.unpack("<I", file.read(4))
        if key.endswith(ending) and kind in _INTEGERS:
            value: int = struct.unpack(_INTEGERS[kind], file.read(_SIZES[kind]))[0]
            return value if value > 0 else None
        _skip(file, kind)
    return None


def _skip(file: BinaryIO, kind: int) -> None:
    if kind == _STRING:
        file.seek(_length(file), 1)
    elif kind == _ARRAY:
        of, count = struct.unpack("<IQ", file.read(12))
        if of in _SIZES:
            file.seek(_SIZES[of] * min(count, _MOST_BYTES), 1)
            return
        if count > _MOST_BYTES:
            raise ValueError(f"an array of {count} values")
        for _ in range(count):
            _skip(file, of)
    elif kind in _SIZES:
        file.seek(_SIZES[kind], 1)
    else:
        raise ValueError(f"a value of the unknown type {kind}")


def _length(file: BinaryIO) -> int:
    length: int = struct.unpack("<Q", file.read(8))[0]
    if length > _MOST_BYTES:
        raise ValueError(f"a text of {length} bytes")
    return length


PACKAGE = "xllamacpp"
INSTALL = "`local2 model try` installs it with a small model; or pip install xllamacpp"
CONTEXT_TOKENS = 32_000  # or the model's own limit, if that is less
# The tokens that a server reads before it can stop: about two seconds of a small model on a busy processor. A graphics
# card reads more in that time, and is faster with more.
BATCH_TOKENS, GPU_BATCH_TOKENS = 64, 512
_GPUS = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")
_NO_DEBUGGER = {"GGML_NO_BACKTRACE": "1"}  # else it has one look at it before it dies
_WAIT_POLICY = {"OMP_WAIT_POLICY": "passive"}  # its idle threads leave the processor to others


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A server to run: `command` with `variables` added to the environment. It listens at `url`, answers GET
    `health_path` with 200 once it can be used, and gets `start_seconds` until then. `minimum_build` is llama-server's.
    """

    name: str
    command: tuple[str, ...]
    url: str
    health_path: str
    start_seconds: float
    variables: Mapping[str, str] = field(default_factory=dict)
    minimum_build: int | None = None

    @property
    def program(self) -> str:
        """Return the program's name, for a person."""
        return f"the package {PACKAGE}" if self.command[0] == sys.executable else self.command[0]

    @property
    def cache_mib(self) -> str:
        """Return the memory that llama-server may use for cached prompts, in MiB; empty if not set."""
        return option(self.command, *CACHE)


def ollama_spec(name: str, program: str, url: str) -> ServerSpec:
    """Ollama, to listen at the address where we look for it. It loads models when they are asked for."""
    return ServerSpec(
        name, (program, "serve"), url, "/api/version", start_seconds=30, variables={"OLLAMA_HOST": urlsplit(url).netloc}
    )


def llama_server_spec(name: str, provider: Provider) -> ServerSpec:
    """Return the specification of llama-server with its one model, on a port that is free now. The owner's `args` come
    last, so they override ours. Raises `ConfigError` for missing files or programs.
    """
    program, model = require_program(name, provider), require_model(name, provider)
    is_package = program[-1].endswith(f"{PACKAGE}_server.py")  # whose build is not reported
    port = provider.port or _free_port()
    command = (
        *program, "--model", str(model), "--alias", model.stem, "--host", "127.0.0.1", "--port", str(port),
        *_our_args(model, provider.args, is_package=is_package), *provider.args,
    )  # fmt: skip
    return ServerSpec(
        name,
        command,
        f"http://127.0.0.1:{port}",
        "/health",
        start_seconds=provider.start_seconds,
        variables=(_NO_DEBUGGER if is_package else {}) | ({} if is_set("OMP_WAIT_POLICY") else _WAIT_POLICY),
        minimum_build=None if is_package else provider.minimum_build,
    )


def _our_args(model: Path, args: Sequence[str], *, is_package: bool) -> tuple[str, ...]:
    context = min(CONTEXT_TOKENS, context_length(model) or CONTEXT_TOKENS)
    ours = ("--jinja", "--ctx-size", str(context), CACHE[0], str(CACHE_MIB))
    if not {"--embedding", "--embeddings"}.isdisjoint(args):  # a text has to fit into one batch
        return ours
    has_gpu = sys.platform == "darwin" or (not is_package and any(Path(device).exists() for device in _GPUS))
    batch = str(GPU_BATCH_TOKENS if has_gpu else BATCH_TOKENS)
    return (*ours, "--batch-size", batch, "--ubatch-size", batch)


def require_program(name: str, provider: Provider) -> tuple[str, ...]:
    """Return how to start llama-server: the configured program, else the one on the path, else the package `xllamacpp`.
    Raises `ConfigError`.
    """
    program = provider.program or "llama-server"
    found = shutil.which(str(Path(program).expanduser()))
    if found is not None:
        return (found,)
    if provider.program is None and importlib.util.find_spec(PACKAGE):
        return (sys.executable, "-I", str(Path(__file__).with_name(f"{PACKAGE}_server.py")))
    where = "install llama.cpp (https://github.com/ggml-org/llama.cpp), or say where it is"
    package = "" if provider.program else f"get the package that brings it ({INSTALL}), "
    raise ConfigError(f"there is no program {program}: {package}{where} with providers.{name}.program in models.yaml")


def require_model(name: str, provider: Provider) -> Path:
    """The file with the model. Raises `ConfigError`."""
    key = f"providers.{name}.model in models.yaml"
    if provider.model is None:
        raise ConfigError(f"llama-server needs a model: write the path of a GGUF file as {key}")
    if not provider.model.is_file():
        raise ConfigError(f"there is no file {provider.model}; correct {key}")
    return provider.model


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


# One run of a server program, and its log.

MAX_BYTES = 2 * 1024 * 1024
_LAST_LINES = 3


class LogFile:
    """Appends to `path`; when that is full, it becomes `<name>.1`, which is replaced.

    Blocks for the disk. Raises `OSError` if the file cannot be written.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def write(self, data: bytes) -> None:
        """Append output of the server."""
        lines = (line.strip() for line in data.decode(errors="replace").splitlines())
        self._last.extend(line for line in lines if line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size + len(data) > self._max_bytes:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        with self.path.open("ab") as file:
            file.write(data)

    @property
    def last_words(self) -> str:
        """Return the end of this process's output, on one line."""
        return " | ".join(self._last) or "nothing"


log = logging.getLogger(__name__)

GRACE_SECONDS = 5.0  # shorter than the time that the supervisor allows us
_CHUNK_BYTES = 65_536


class ServerProcess:
    """The server runs while the `async with` block lasts, and not a moment longer than this process; see `guard`.

    What it says goes to `log_file`.
    """

    def __init__(self, spec: ServerSpec, log_file: LogFile, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._spec, self._log_file, self._grace_seconds = spec, log_file, grace_seconds
        self._process: asyncio.subprocess.Process
        self._end: asyncio.Task[int]

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(Path(guard.__file__)), str(self._grace_seconds), *self._spec.command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env=environment_with(self._spec.variables), process_group=0,
        )  # fmt: skip
        self._end = asyncio.create_task(self._follow(), name=f"log of {self._spec.name}")
        return self

    async def __aexit__(self, *error: object) -> None:
        """End the server; the guard limits this to `grace_seconds`."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._end

    @property
    def has_ended(self) -> bool:
        """Whether the server ended by itself."""
        return self._end.done()

    async def ended(self, seconds: float) -> bool:
        """Wait for the server to end, for so long at most; gives whether it has."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._end), seconds)
        return self.has_ended

    def how_it_ended(self) -> str:
        """Return for a person its exit status or signal and its last output, and where the rest is."""
        status = self._end.result()
        how = f"was killed by {signal.Signals(status - 128).name}" if status > 128 else f"ended with status {status}"
        return f"{self._spec.name} {how}; it said last: {self._log_file.last_words} (all of it: {self._log_file.path})"

    async def _follow(self) -> int:
        """Write its output to the log until it has ended; returns its exit status."""
        assert self._process.stdout is not None
        complained = False
        while data := await self._process.stdout.read(_CHUNK_BYTES):
            try:
                await asyncio.to_thread(self._log_file.write, data)
            except OSError as error:
                if not complained:
                    log.error("what %s says cannot be kept: %s", self._spec.name, error)
                complained = True
        return await self._process.wait()


# Runs a model server until it is asked to stop: starts it, waits until it can be used, and watches it.

_POLL_SECONDS, _WATCH_SECONDS = 0.1, 5.0
_ANSWER_SECONDS = 5.0
HANG_SECONDS = 60.0  # a machine that swaps may take its time
_TELL_SECONDS = 10.0


class ModelServerFailed(LocalError):
    """A model server that we run has ended, hangs or cannot begin; the text contains its last output."""

    kind = "model_server_failed"


async def serve(
    spec: ServerSpec,
    log_dir: Path,
    stop: asyncio.Event,
    on_ready: Callable[[], object],
    *,
    watch_seconds: float = _WATCH_SECONDS,
    hang_seconds: float = HANG_SECONDS,
) -> None:
    """Run the server until `stop` is set; calls `on_ready` once it can be used.

    Its output goes to `<log_dir>/<name>.log`. Raises `ModelServerFailed` if it ends by itself, does not become ready in
    time or does not answer for `hang_seconds`; `ConfigError` for a server that is too old.
    """
    _require_free_port(spec)
    log_file = LogFile(log_dir / f"{spec.name}.log")
    async with (
        httpx.AsyncClient(base_url=spec.url, trust_env=False, verify=False, timeout=_ANSWER_SECONDS) as client,
        ServerProcess(spec, log_file) as process,
    ):
        stopping = asyncio.create_task(stop.wait())
        running = asyncio.create_task(_run(spec, client, process, on_ready, watch_seconds, hang_seconds))
        try:
            await asyncio.wait({stopping, running}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            for task in (stopping, running):
                task.cancel()
            await asyncio.wait({stopping, running})


async def _run(
    spec: ServerSpec,
    client: httpx.AsyncClient,
    process: ServerProcess,
    on_ready: Callable[[], object],
    watch_seconds: float,
    hang_seconds: float,
) -> None:
    log.info("%s", " ".join(spec.command))
    await _until_ready(spec, client, process)
    if spec.minimum_build is not None:
        require_build(spec, (await client.get("/props")).json())
    if process.has_ended:  # then another program has answered
        raise ModelServerFailed(process.how_it_ended())
    on_ready()
    heard_at = time.monotonic()
    while not await process.ended(watch_seconds):
        if await _answers(spec, client):
            heard_at = time.monotonic()
        elif time.monotonic() - heard_at > hang_seconds:
            raise ModelServerFailed(f"{spec.name} has not answered at {spec.url} for {hang_seconds:g} s")
    raise ModelServerFailed(process.how_it_ended())


async def _until_ready(spec: ServerSpec, client: httpx.AsyncClient, process: ServerProcess) -> None:
    began = told_at = time.monotonic()
    while not await _answers(spec, client):
        if await process.ended(_POLL_SECONDS):
            raise ModelServerFailed(process.how_it_ended())
        now = time.monotonic()
        if now - began > spec.start_seconds:
            raise ModelServerFailed(f"{spec.name} was not ready within {spec.start_seconds:g} s; see start_seconds")
        if now - told_at > _TELL_SECONDS:
            told_at = now
            log.info("%s is loading its model (%.0f s)", spec.name, now - began)


async def _answers(spec: ServerSpec, client: httpx.AsyncClient) -> bool:
    with suppress(httpx.HTTPError):
        return (await client.get(spec.health_path)).status_code == httpx.codes.OK
    return False


def require_build(spec: ServerSpec, props: Any) -> None:
    """Raise `ConfigError` unless /props reports a build that is new enough: "build_info": "b8681-d2ba7a9"."""
    told = str(props.get("build_info", "")) if isinstance(props, dict) else ""
    build = re.match(r"b(\d+)", told)
    if build is None:
        raise ConfigError(f"the server at {spec.url} reports no build of llama-server ({told or 'none'}): update it")
    if int(build[1]) < (spec.minimum_build or 0):
        advice = "Gemma 4 needs b8665 or newer: update llama.cpp, or set minimum_build in models.yaml for other models"
        raise ConfigError(f"{spec.command[0]} is build {told}, and b{spec.minimum_build} is asked for. {advice}")


def _require_free_port(spec: ServerSpec) -> None:
    url = urlsplit(spec.url)
    host = url.hostname or ""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, url.port or 0), family=family).close()
    except OSError as error:
        raise ModelServerFailed(f"{spec.name} cannot listen at {spec.url}: {error.strerror}") from None
