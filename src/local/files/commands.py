"""`local2 undo …`: what tools have changed in the workspace, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found, write_lines
from local.core.errors import BadQuestion

Json = dict[str, Any]
Call = Annotated[str, typer.Argument(metavar="CALL_ID", help="As `local2 undo list` shows it.")]
Turn = Annotated[str, typer.Argument(metavar="QUERY_ID", help="As `local2 undo list` shows it.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many at most.")]

undo_app = typer.Typer(help="Take back what tools have changed in the workspace: list, show, call, turn, day.")


@undo_app.command("list")
def list_changes(
    limit: Limit = 20, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None
) -> None:
    """Show which files were changed last, the latest first.

    Example: local2 undo list -n 5
    """
    found = running_system(api, data_dir).request("GET", f"/changes?limit={limit}")
    lines = map(_line, found["changes"])
    write_found(found, lines, as_json=as_json, nothing=f"nothing was changed in {found['workspace']}")


@undo_app.command()
def show(call_id: Call, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show how a call has changed files.

    Example: local2 undo show q1:0:0
    """
    found = running_system(api, data_dir).request("GET", f"/changes?call_id={quote(call_id, safe='')}")
    if not found["changes"]:
        raise BadQuestion(f"no change of call {call_id} is kept")
    write_found(found, _whole(found["changes"]), as_json=as_json, nothing="")


@undo_app.command("call")
def undo_call(call_id: Call, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Undo what one call of a tool has changed.

    Example: local2 undo call q1:0:0
    """
    _undo({"call_id": call_id}, api, data_dir, as_json=as_json)


@undo_app.command("turn")
def undo_turn(query_id: Turn, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Undo all that was changed for one question.

    Example: local2 undo turn q1
    """
    _undo({"query_id": query_id}, api, data_dir, as_json=as_json)


@undo_app.command("day")
def undo_day(
    day: Annotated[str, typer.Argument(metavar="[DATE]", help="As 2026-11-22; without it, today.")] = "",
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Undo all that was changed on one day.

    Example: local2 undo day 2026-11-22
    """
    _undo({"day": day or datetime.now().date().isoformat()}, api, data_dir, as_json=as_json)


def _undo(what: Json, api: str | None, data_dir: Any, *, as_json: bool) -> None:
    done = running_system(api, data_dir).request("POST", "/changes/undo", what)
    paths = dict.fromkeys(change["path"] for change in done["undone"])
    said = [f"{visible(path)} is as it was" for path in paths]
    write_lines([json.dumps(done)] if as_json else said)


def _line(change: Json) -> str:
    mark = "  (undone)" if change["undone"] else ""
    return f"{date_and_time(change['at'])}  {change['call_id']}  {change['what']:7}  {visible(change['path'])}{mark}"


def _whole(changes: Sequence[Json]) -> Iterator[str]:
    for change in changes:
        yield _line(change)
        yield from (visible(line) for line in change["diff"].splitlines())
