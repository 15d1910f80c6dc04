"""`local2 restart NAME`: one participant of the system that runs, with what its settings say by now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.apps.command_line import ApiOption, DataDir
from local.apps.console.answering_system import running_system
from local.apps.run_directory import NotRunning
from local.apps.system_client import STOPPING, SystemClient
from local.apps.terminal import visible
from local.errors import LocalError, NoAnswer

API, TOLD = "api", "participant"

Name = Annotated[str, typer.Argument(metavar="NAME", help="As /health and `local2 tap` call it.")]


def restart(name: Name, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Stop a participant and start it again, with the settings that its file has now; or start one that your settings
    name since the system runs.

    Example: local2 restart web_search
    """
    child = _restarted(name, api, data_dir)
    if _has_failed(child):
        typer.echo(_said(child), err=True)
        raise typer.Exit(1)
    typer.echo(_said(child) + (f", process {child['pid']}" if child["pid"] else ""))


def taken_over(name: str, directory: Path | None) -> str:
    """Have the system that runs, if one does, take over what was decided of a participant; tells what came of it."""
    try:
        child = _restarted(name, None, directory)
    except NotRunning:
        return "no system runs: the next one has that"
    except LocalError as error:
        why = f"it has no {name}" if error.kind == "not_found" else visible(str(error))
        return f"the system that runs has not taken that over: {why}"
    return (
        f"in the system that runs {_said(child)}" if _has_failed(child) else "the system that runs has taken that over"
    )


def _restarted(name: str, api: str | None, directory: Path | None) -> dict[str, Any]:
    with running_system(api, directory) as client:
        path = f"/participants/{quote(name, safe='')}/restart"
        child: dict[str, Any] = _api_restarted(client, path) if name == API else client.insist("POST", path, {})[TOLD]
    return child


def _api_restarted(client: SystemClient, path: str) -> dict[str, Any]:
    """The API itself, once. A door that closes before it has answered is being restarted, at the wish of this command
    or of another one: the next door tells what came of it."""
    try:
        child: dict[str, Any] = client.request("POST", path, {})[TOLD]
    except NoAnswer as error:
        if error.kind != STOPPING:
            raise
        child = next(each for each in client.request("GET", "/participants")["participants"] if each["name"] == API)
    return child


def _has_failed(child: dict[str, Any]) -> bool:
    return bool(child["state"] == "failed")


def _said(child: dict[str, Any]) -> str:
    if child["state"] == "gone":
        return f"{child['name']} takes part no longer: {child['detail']}"
    why = f"has failed: {visible(child['detail'])}" if _has_failed(child) else f"is {child['state']}"
    return f"{child['name']} {why}"
