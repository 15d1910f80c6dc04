"""`local2 dream`, `local2 goals` and `local2 monologue`: the background work of the assistant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found

# Shared by the commands of all routines: switch a routine on or off, run it now, and show its state.


def add_switches(app: typer.Typer, command: str, path: str, switches: Mapping[str, tuple[str, str]]) -> None:
    """Add `now`, `on` and `off` to `local2 COMMAND`, each with its help and the text printed when it is done."""
    for verb, (help_text, done) in switches.items():
        switch = partial(_switch, f"{path}/{verb}", done)
        app.command(verb, help=f"{help_text}\n\nExample: local2 {command} {verb}")(_with_options(switch))


def _with_options(switch: Callable[[str | None, Path | None], None]) -> Callable[..., None]:
    """Return a separate function for each command, because typer reads the options from the parameters."""

    def command(api: ApiOption = None, data_dir: DataDir = None) -> None:
        switch(api, data_dir)

    return command


def _switch(path: str, done: str, api: str | None, data_dir: Path | None) -> None:
    """Post to a path such as /dreams/on, and print `done` or the reason why it was not done. Raises as
    `running_system` does.
    """
    with running_system(api, data_dir) as client:
        state = client.request("POST", path)
    typer.echo(visible(f"not now: {state['why']}" if path.endswith("/now") and state["why"] else done))


def routine_line(state: dict[str, Any]) -> str:
    """Return one line with the routine's tokens of today, what it waits for, and its latest problem."""
    waits = f", waits for: {visible(state['why'])}" if state["why"] else ""
    problem = f", problem: {visible(state['problem'])}" if state["problem"] else ""
    return f"{state['tokens_today']} of {state['tokens_per_day']} tokens today{waits}{problem}"


# `local2 dream …`: notes on conversations, made in the background.

Json = dict[str, Any]

dream_app = typer.Typer(help="Dreams, notes on what your conversations have in common: list, now, on, off.")


@dream_app.command("list")
def list_dreams(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the state of the dreamer and its dreams, with the exchanges that each is based on.

    Example: local2 dream list
    """
    found = running_system(api, data_dir).request("GET", "/dreams")
    write_found(found, [_state_line(found), *_dream_lines(found["dreams"])], as_json=as_json, nothing="")


def _state_line(state: Json) -> str:
    last = f"dreamt {date_and_time(state['done_at'])}" if state["done_at"] else "no dream yet"
    return f"{last}, {routine_line(state)}"


def _dream_lines(dreams: list[Json]) -> Iterator[str]:
    for dream in dreams:
        sources = ", ".join(each[:8] for each in dream["sources"])
        yield f"{dream['engram_id'][:8]}  {date_and_time(dream['until'])}  {visible(dream['text'])}  (from {sources})"


GoalId = Annotated[str, typer.Argument(metavar="GOAL", help="Id of a goal, as `local2 goals list` shows it.")]

goal_app = typer.Typer(help="Goals that are checked in the background: list, set, done, drop, reopen, now, on, off.")


@goal_app.command("list")
def list_goals(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """List the goals with the latest remark on each. The remarks then count as read.

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
    text: Annotated[str, typer.Argument(help="What you want to achieve.")],
    every: Annotated[
        str, typer.Option(help="When to check it, such as 'every 4h' or '0 18 * * 5' (default: once a day).")
    ] = "",
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
    """Mark a goal as reached; it is no longer checked.

    Example: local2 goals done 3f2a0c81d5e7
    """
    _become(goal, "done", api, data_dir)


@goal_app.command()
def drop(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Give up a goal; it is no longer checked.

    Example: local2 goals drop 3f2a0c81d5e7
    """
    _become(goal, "dropped", api, data_dir)


@goal_app.command()
def reopen(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Check a goal again that was done or dropped.

    Example: local2 goals reopen 3f2a0c81d5e7
    """
    _become(goal, "active", api, data_dir)


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


# `local2 monologue …`: thoughts about recent conversations, made in the background.

monologue_app = typer.Typer(help="The inner monologue, short thoughts about your conversations: show, now, on, off.")


@monologue_app.command()
def show(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Show at most this many.")] = 20,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show the state of the monologue and its thoughts, the latest first.

    Example: local2 monologue show
    """
    with running_system(api, data_dir) as client:
        found = client.request("GET", f"/monologue?limit={limit}")
    write_found(
        found,
        [f"{'on' if found['is_on'] else 'off'}, {routine_line(found)}", *_thought_lines(found["thoughts"])],
        as_json=as_json,
        nothing="",
    )


def _thought_lines(thoughts: list[Json]) -> Iterator[str]:
    for thought in thoughts:
        left_out = f", {thought['left_out']} with untrusted content left out" if thought["left_out"] else ""
        rests = f"(from {len(thought['sources'])} exchanges{left_out})"
        yield f"{date_and_time(thought['at'])}  {visible(thought['text'])}  {rests}"


add_switches(
    dream_app,
    "dream",
    "/dreams",
    {
        "now": (
            "Dream now; `local2 dream list` shows the result a moment later.",
            "dreaming; see `local2 dream list`",
        ),
        "on": ("Switch it on, also after restarts.", "switched on"),
        "off": ("Switch it off, also after restarts.", "switched off"),
    },
)
add_switches(
    goal_app,
    "goals",
    "/goals",
    {
        "now": (
            "Check all goals now; `local2 goals list` shows new remarks a moment later.",
            "checking; see `local2 goals list`",
        ),
        "on": ("Switch the checks on, also after restarts.", "goals are checked"),
        "off": ("Switch the checks off, also after restarts.", "goals are no longer checked"),
    },
)
add_switches(
    monologue_app,
    "monologue",
    "/monologue",
    {
        "now": (
            "Think now, if there are new exchanges; `local2 monologue show` shows the thought a moment later.",
            "thinking; see `local2 monologue show`",
        ),
        "on": ("Switch it on, also after restarts.", "switched on"),
        "off": ("Switch it off, also after restarts.", "switched off"),
    },
)
