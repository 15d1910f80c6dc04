"""Checks of what runs already: the port of the HTTP API, and the system's own health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from local.apps.doctor.finding import Finding, fail, ok, warn
from local.apps.listener import listen
from local.apps.run_directory import Facts
from local.config import SystemConfig
from local.errors import ConfigError

SECONDS = 2.0
RESTART = "stop it with Ctrl-C or SIGTERM and start it again; its log says why"


def check_port(system: SystemConfig, running: Facts | None) -> Finding:
    """The port of the API is free, or our own system listens on it."""
    port = system.api_port
    if running is not None and running.api_url and urlsplit(running.api_url).port == port:
        return ok("api port", f"{port} is used by our own system (process {running.pid})")
    try:
        listen(system.api_host, port).close()
    except ConfigError as error:
        return fail("api port", str(error), "stop the other program, or set api_port in system.yaml")
    return ok("api port", f"{port} is free" if port else "any free port is taken")


async def check_health(running: Facts | None) -> Finding:
    """What the running system says of itself."""
    name = "running system"
    if running is None:
        return ok(name, "none on this data directory; start one with scripts/run_local.py")
    who = f"process {running.pid}"
    if running.api_url is None:
        return ok(name, f"{who}, without an HTTP API")
    try:
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            health = (await client.get(f"{running.api_url}/health")).json()
    except (httpx.HTTPError, ValueError) as error:
        reason = str(error) or type(error).__name__
        return fail(name, f"{who} does not answer at {running.api_url}/health: {reason}", RESTART)
    status = health.get("status") if isinstance(health, dict) else None
    if status == "ok":
        return ok(name, f"{who}, {running.api_url}, model server {running.model_backend}")
    told = "; ".join(problems(health)) if isinstance(health, dict) else ""
    return warn(name, f"{who}, {running.api_url}, says it is {status}{told and f': {told}'}", RESTART)


def problems(health: Mapping[str, Any]) -> list[str]:
    """What each participant says is wrong with it, such as the second respondent with its model."""
    return [
        f"{participant['name']}: {text}"
        for participant in health.get("participants", ())
        for name, text in participant.get("details", {}).items()
        if name.endswith("problem")
    ]
