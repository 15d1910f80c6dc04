"""Runs a model server until it is asked to stop: starts it, waits until it can be used, and watches it."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from local.errors import ConfigError, LocalError
from local.models.servers.process import LogFile, ServerProcess
from local.models.servers.spec import ServerSpec

log = logging.getLogger(__name__)

_POLL_SECONDS, _WATCH_SECONDS = 0.1, 5.0
_ANSWER_SECONDS = 5.0
HANG_SECONDS = 60.0  # a machine that swaps may take its time
_TELL_SECONDS = 10.0


class ModelServerFailed(LocalError):
    """A model server that we run has ended, hangs or cannot begin; the text tells its last words."""

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
    if process.has_ended:  # then somebody else has answered
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
    """Raises `ConfigError` unless /props tells of a build that is new enough: "build_info": "b8681-d2ba7a9"."""
    told = str(props.get("build_info", "")) if isinstance(props, dict) else ""
    build = re.match(r"b(\d+)", told)
    if build is None:
        raise ConfigError(f"what answers at {spec.url} tells no build of llama-server ({told or 'none'}): update it")
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
