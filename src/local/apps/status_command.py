"""`local2 status`: how the system is, with every process of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer

from local.apps.command_line import ApiOption, DataDir, JsonOption
from local.apps.console.answering_system import AnsweringSystem
from local.apps.terminal import visible, write_lines
from local.environment import data_dir as find_data_dir
from local.errors import NoApi

Json = dict[str, Any]
NOT_WELL = 1


def status(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show how the system is: its model, and each participant with its state, restarts and troubles.

    Exit status: 0 if all is well, 1 if it starts or something is wrong, 2 if no system runs.

    Example: local2 status
    """
    with AnsweringSystem(api, data_dir, may_start=False) as system:
        try:
            health = system.find().health()
        except NoApi:
            health = _on_bus(data_dir)
    write_lines([json.dumps(health)] if as_json else status_lines(health))
    if health["status"] != "ok":
        raise typer.Exit(NOT_WELL)


def status_lines(health: Json) -> Iterator[str]:
    """What GET /health says, for people: the system in a line, what is wrong with it, and a line a participant."""
    said = [health["status"], health.get("model"), _on(health.get("backend")), _version(health.get("version"))]
    yield visible("  ".join(str(each) for each in said if each))
    for name in ("problem", "notice"):
        if health.get(name):
            yield visible(f"{name}: {health[name]}")
    if not health.get("participants"):
        return
    form = "{:<18} {:<8} {:<9} {:>7} {:>8}  {}"
    yield form.format("participant", "kind", "state", "process", "restarts", "").rstrip()
    for row in health["participants"]:
        figures = [row["name"], row.get("kind") or "", row["state"], row.get("pid") or "-", row.get("restarts") or 0]
        yield visible(form.format(*figures, _trouble(row))).rstrip()


def _on(backend: str | None) -> str:
    return f"on {backend}" if backend else ""


def _version(version: str | None) -> str:
    return f"version {version}" if version else ""


def _trouble(row: Json) -> str:
    problem = (row.get("details") or {}).get("problem")
    return "; ".join(str(each) for each in (problem, row.get("detail")) if each)


def _on_bus(data_dir: DataDir) -> Json:
    """Of a system that serves no HTTP."""
    import asyncio  # these two take longer than all that others import

    from local.apps.doctor.status_on_bus import health_on_bus

    return asyncio.run(health_on_bus(find_data_dir(data_dir)))
