"""Checks of what takes part: the running system's health, the memory with its embedding model, the search providers."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from local.agents.remembering.condition import DIRECTORY, Condition, examine, try_bundled_model
from local.apps.doctor.doctor_finding import DoctorFinding, FindingStatus, fail, ok, warn
from local.apps.doctor.installation import Installation
from local.apps.doctor.machine import REINSTALL
from local.apps.doctor.status_on_bus import health_on_bus
from local.apps.run_directory import Facts
from local.errors import LocalError, ModelError, StoreDamaged, StoreFailed
from local.tools.shell import sandbox_problem
from local.tools.web_search import WebSearchConfig, key_problem

SECONDS = 2.0
RESTART = "stop it with Ctrl-C or SIGTERM and start it again; its log says why"
MEND = "mend what it says; it is tried again by itself, and the log says more"
MEMORY = "memory"


async def check_health(running: Facts | None, data_dir: Path | None = None) -> list[DoctorFinding]:
    """What the running system says of itself, over HTTP or else on the bus of `data_dir`; one finding more for each
    participant that does not serve."""
    name = "running system"
    if running is None:
        return [ok(name, "none on this data directory; start one with `local2 run`")]
    who = f"process {running.pid}, {running.api_url or 'without an HTTP API'}"
    try:
        health = await _health(running.api_url, data_dir)
    except (httpx.HTTPError, ValueError, LocalError) as error:
        reason = str(error) or type(error).__name__
        return [fail(name, f"process {running.pid} does not answer at {running.api_url}/health: {reason}", RESTART)]
    if health is None:
        return [ok(name, who)]
    status = health.get("status") if isinstance(health, dict) else None
    if status == "ok":
        return [ok(name, f"{who}, model server {running.model_backend}")]
    told = "; ".join(problems(health)) if isinstance(health, dict) else ""
    failures = check_participants(health) if isinstance(health, dict) else []
    return [warn(name, f"{who}, says it is {status}{told and f': {told}'}", RESTART), *failures]


async def _health(api_url: str | None, data_dir: Path | None) -> Any:
    """Nothing where nobody can be asked. Raises `httpx.HTTPError`, `ValueError`, `LocalError`."""
    if api_url is None:
        return None if data_dir is None else await health_on_bus(data_dir)
    async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
        return (await client.get(f"{api_url}/health")).json()


def check_participants(health: Mapping[str, Any]) -> list[DoctorFinding]:
    """The participants that do not serve, and why: a failure for one that was given up, else a warning."""
    found = []
    for participant in health.get("participants", ()):
        name, state = participant["name"], participant.get("state", "ready")
        why = f": {detail}" if (detail := participant.get("detail")) else ""
        if state == "failed":
            found.append(fail(name, f"{name} has failed{why}", MEND))
        elif state != "ready":
            found.append(warn(name, f"{name} is {state}{why}", "wait a moment and look again"))
    return found


def problems(health: Mapping[str, Any]) -> list[str]:
    """What is wrong with the system as a whole, and what participants say of their own troubles, such as the second
    respondent of its model."""
    whole = [health["problem"]] if health.get("problem") else []
    return whole + [
        f"{participant['name']}: {text}"
        for participant in health.get("participants", ())
        for name, text in participant.get("details", {}).items()
        if name.endswith("problem")
    ]


async def check_memory(installation: Installation) -> list[DoctorFinding]:
    """The store of the memory and the bundled embedding model, if the memory takes part."""
    if MEMORY not in installation.configs:
        return [ok(MEMORY, "memory does not take part")]
    store = await asyncio.to_thread(check_store, installation.data_dir / DIRECTORY)
    return [store, await check_bundled_model()]


def check_store(directory: Path) -> DoctorFinding:
    """The store can be read and is sound."""
    try:
        condition = examine(directory)
    except StoreDamaged as error:
        fix = f"stop the system and move {directory} away; what is only in there is lost without a backup"
        return fail(MEMORY, str(error), fix)
    except StoreFailed as error:
        return fail(MEMORY, str(error), f"make {directory} and all in it readable for this user")
    if condition is None:
        return ok(MEMORY, "nothing is remembered yet")
    return ok(MEMORY, f"{directory} is sound; exchanges: {condition.engrams}; {_index(condition)}")


def _index(condition: Condition) -> str:
    if condition.pending:
        return f"{condition.pending} of them are still to be embedded"
    return "all of them are embedded"


async def check_bundled_model(directory: Path | None = None) -> DoctorFinding:
    """The embedding model that needs no model server works: it embeds something."""
    name = "bundled model"
    try:
        model = await try_bundled_model(directory)
    except (ModelError, ImportError) as error:
        text = f"{error}; without an embedding model on the model server, memories are found by their words alone"
        return warn(name, text, REINSTALL)
    return ok(name, f"{model} embeds where no model server does")


async def check_search(config: WebSearchConfig | None) -> list[DoctorFinding]:
    """One finding for each provider; one that cannot look is only a warning if another can."""
    if config is None:
        return [ok("search", "web_search does not take part")]
    names = dict.fromkeys([config.provider, *config.fallback_providers])
    return soften([await _check_provider(name, config) for name in names])


def soften(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    """The findings, with failures as warnings if one provider works."""
    if all(finding.status is FindingStatus.FAIL for finding in findings):
        return list(findings)
    return [replace(f, status=FindingStatus.WARN) if f.status is FindingStatus.FAIL else f for f in findings]


async def _check_provider(provider: str, config: WebSearchConfig) -> DoctorFinding:
    match provider:
        case "searxng":
            return await check_searxng(config.searxng_url)
        case "brave" | "tavily":
            return _check_key(provider, config)
        case "ddgs":
            if importlib.util.find_spec("ddgs") is None:
                return fail("search", "ddgs: the package ddgs is not installed", "pip install ddgs")
            return ok("search", "ddgs: the package is installed")
        case "mock":
            return warn("search", "mock: gives canned results only", "set provider in web_search.yaml")
    return fail("search", f"there is no provider {provider!r}", "set provider in web_search.yaml")


def _check_key(provider: str, config: WebSearchConfig) -> DoctorFinding:
    if problem := key_problem(provider, config):
        return fail("search", f"{provider}: {problem}", "get a key from the provider and start again")
    return ok("search", f"{provider}: there is a key")


async def check_searxng(url: str) -> DoctorFinding:
    """SearXNG answers, and in JSON. Asked without a query, it says 403 if JSON is disabled, else 400, and searches
    nothing (`search()` in https://github.com/searxng/searxng/blob/master/searx/webapp.py)."""
    try:
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            answer = await client.get(f"{url.rstrip('/')}/search", params={"format": "json"})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        text = f"searxng: no answer at {url} ({str(error) or type(error).__name__})"
        fix = "start SearXNG, correct searxng_url, or choose another provider in web_search.yaml"
        return fail("search", text, fix)
    return judge_searxng(url, answer.status_code, answer.headers.get("content-type", ""))


def judge_searxng(url: str, status: int, content_type: str) -> DoctorFinding:
    """What the HTTP status and content type of SearXNG's answer to no query mean."""
    if status in (200, 400) and "json" in content_type:
        return ok("search", f"searxng: answers in JSON at {url}")
    if status == 403:
        return fail("search", f"searxng: {url} refuses JSON", "add 'json' to search.formats in its settings.yml")
    if status == 429:
        fix = "allow this machine in its limiter.toml, or turn the limiter off"
        return fail("search", f"searxng: the limiter of {url} refuses us", fix)
    text = f"searxng: what answers at {url} is no SearXNG (HTTP {status})"
    return fail("search", text, "correct searxng_url in web_search.yaml: the address without /search")


def check_commands(takes_part: bool) -> DoctorFinding | list[DoctorFinding]:
    """The sandbox in which commands run, where commands are run at all."""
    if not takes_part:
        return []
    problem = sandbox_problem()
    if problem is None:
        return ok("commands", "they run in a sandbox")
    return warn("commands", f"the model can run none: {problem.why}", problem.fix)
