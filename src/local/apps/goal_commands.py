"""`local2 goals …`: what you want to get to, and what was said of it while you asked nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.apps.command_line import ApiOption, DataDir, JsonOption
from local.apps.console.answering_system import running_system
from local.apps.routine_switch import routine_line, switch_routine
from local.apps.terminal import date_and_time, visible, write_found

Json = dict[str, Any]
GoalId = Annotated[str, typer.Argument(metavar="GOAL", help="As `local2 goals list` shows it.")]

goal_app = typer.Typer(
    help="Goals that are checked while you ask nothing: list, set, done, drop, reopen, now, on, off."
)


@goal_app.command("list")
def list_goals(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the goals, and what was said of them last; it counts as seen then.

    Example: local2 goals list
    """
    with running_system(api, data_dir) as client:
        found = client.request("GET", "/goals")
        for goal in found["goals"]:
            if not goal["is_seen"]:
                client.request("PATCH", f"/goals/{goal['goal_id']}", {"seen": goal["words_at"]})
    write_found(found, [routine_line(found), *_goal_lines(found["goals"])], as_json=as_json, nothing="")


@goal_app.command("set")
def set_goal(
    text: Annotated[str, typer.Argument(help="What you want to get to.")],
    every: Annotated[str, typer.Option(help="When it is checked: 'every 4h', '0 18 * * 5'. Else once a day.")] = "",
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Set a goal.

    Example: local2 goals set "Hand in the tax return by Friday" --every "0 18 * * *"
    """
    with running_system(api, data_dir) as client:
        goal = client.request("POST", "/goals", {"text": text, "schedule": every, "by": "terminal"})
    write_found(goal, _goal_lines([goal]), as_json=as_json, nothing="")


@goal_app.command()
def done(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """A goal is reached, and checked no more.

    Example: local2 goals done 3f2a0c81d5e7
    """
    _become(goal, "done", api, data_dir)


@goal_app.command()
def drop(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """You do not want it any more, so it is checked no more.

    Example: local2 goals drop 3f2a0c81d5e7
    """
    _become(goal, "dropped", api, data_dir)


@goal_app.command()
def reopen(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have a goal checked again that was done or dropped.

    Example: local2 goals reopen 3f2a0c81d5e7
    """
    _become(goal, "active", api, data_dir)


@goal_app.command()
def now(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have every goal checked now; what is to be said is listed a moment later.

    Example: local2 goals now
    """
    switch_routine("/goals/now", "they are checked; see `local2 goals list`", api, data_dir)


@goal_app.command()
def on(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have goals checked, from now on and after restarts.

    Example: local2 goals on
    """
    switch_routine("/goals/on", "they are checked from now on", api, data_dir)


@goal_app.command()
def off(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have no goal checked, from now on and after restarts.

    Example: local2 goals off
    """
    switch_routine("/goals/off", "they are checked no more", api, data_dir)


def _become(goal: str, state: str, api: str | None, data_dir: Path | None) -> None:
    with running_system(api, data_dir) as client:
        changed = client.request("PATCH", f"/goals/{quote(goal, safe='')}", {"state": state, "by": "terminal"})
    for line in _goal_lines([changed]):
        typer.echo(line)


def _goal_lines(goals: list[Json]) -> Iterator[str]:
    for goal in goals:
        stands = goal["state"] if goal["next_at"] is None else f"next {date_and_time(goal['next_at'])}"
        checks = f"{goal['checks']} checks, {goal['quiet']} of them quiet"
        yield f"{goal['goal_id']}  {stands:22}  {visible(goal['text'])}  ({visible(goal['schedule'])}; {checks})"
        if goal["words"]:
            new = "" if goal["is_seen"] else "  (new)"
            yield f"    {date_and_time(goal['words_at'])}: {visible(goal['words'])}{new}"
