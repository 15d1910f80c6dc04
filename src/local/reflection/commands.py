"""`local2 dream`, `local2 goals` and `local2 monologue`: what the assistant does while you ask nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found

# What commands of all routines do alike: switch one, have it done now, and say how it is.


def add_switches(app: typer.Typer, command: str, path: str, switches: Mapping[str, tuple[str, str]]) -> None:
    """Add `now`, `on` and `off` to `local2 COMMAND`: each with its help and with what is said when it is done."""
    for verb, (help_text, done) in switches.items():
        switch = partial(_switch, f"{path}/{verb}", done)
        app.command(verb, help=f"{help_text}\n\nExample: local2 {command} {verb}")(_with_options(switch))


def _with_options(switch: Callable[[str | None, Path | None], None]) -> Callable[..., None]:
    """A function of its own for each command: typer reads its options from the parameters."""

    def command(api: ApiOption = None, data_dir: DataDir = None) -> None:
        switch(api, data_dir)

    return command


def _switch(path: str, done: str, api: str | None, data_dir: Path | None) -> None:
    """Post to /dreams/on or the like, and say what is `done`, or why it is not. Raises as `running_system` does."""
    with running_system(api, data_dir) as client:
        state = client.request("POST", path)
    typer.echo(visible(f"not now: {state['why']}" if path.endswith("/now") and state["why"] else done))


def routine_line(state: dict[str, Any]) -> str:
    """What the routine has used today, what it waits for, and what was wrong last."""
    waits = f", waits for: {visible(state['why'])}" if state["why"] else ""
    problem = f", problem: {visible(state['problem'])}" if state["problem"] else ""
    return f"{state['tokens_today']} of {state['tokens_per_day']} tokens today{waits}{problem}"


# `local2 dream …`: what was seen in your conversations while you asked nothing.

Json = dict[str, Any]

dream_app = typer.Typer(help="Dreams, notes on what your conversations say together: list, now, on, off.")


@dream_app.command("list")
def list_dreams(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show how the dreamer is and what it has seen, with the exchanges that each rests on.

    Example: local2 dream list
    """
    found = running_system(api, data_dir).request("GET", "/dreams")
    write_found(found, [_state_line(found), *_dream_lines(found["dreams"])], as_json=as_json, nothing="")


def _state_line(state: Json) -> str:
    last = f"dreamt {date_and_time(state['done_at'])}" if state["done_at"] else "has not dreamt yet"
    return f"{last}, {routine_line(state)}"


def _dream_lines(dreams: list[Json]) -> Iterator[str]:
    for dream in dreams:
        sources = ", ".join(each[:8] for each in dream["sources"])
        yield f"{dream['engram_id'][:8]}  {date_and_time(dream['until'])}  {visible(dream['text'])}  (from {sources})"


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
    """A goal is reached, and no longer checked.

    Example: local2 goals done 3f2a0c81d5e7
    """
    _become(goal, "done", api, data_dir)


@goal_app.command()
def drop(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """You no longer want it, so it is no longer checked.

    Example: local2 goals drop 3f2a0c81d5e7
    """
    _become(goal, "dropped", api, data_dir)


@goal_app.command()
def reopen(goal: GoalId, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have a goal checked again that was done or dropped.

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


# `local2 monologue …`: what was thought while you asked nothing.

monologue_app = typer.Typer(help="The inner monologue, short thoughts about your conversations: show, now, on, off.")


@monologue_app.command()
def show(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many at most.")] = 20,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show how it is and what it has thought, the latest first.

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
        left_out = f", {thought['left_out']} with words of strangers left out" if thought["left_out"] else ""
        rests = f"(from {len(thought['sources'])} exchanges{left_out})"
        yield f"{date_and_time(thought['at'])}  {visible(thought['text'])}  {rests}"


add_switches(
    dream_app,
    "dream",
    "/dreams",
    {
        "now": (
            "Have it look back now; what it sees is listed a moment later.",
            "it looks back; see `local2 dream list`",
        ),
        "on": ("Switch it on, from now on and after restarts.", "it is switched on"),
        "off": ("Switch it off, from now on and after restarts.", "it is switched off"),
    },
)
add_switches(
    goal_app,
    "goals",
    "/goals",
    {
        "now": (
            "Have every goal checked now; what is to be said is listed a moment later.",
            "they are checked; see `local2 goals list`",
        ),
        "on": ("Have goals checked, from now on and after restarts.", "they are checked from now on"),
        "off": ("Have no goal checked, from now on and after restarts.", "they are checked no more"),
    },
)
add_switches(
    monologue_app,
    "monologue",
    "/monologue",
    {
        "now": (
            "Have it think now, if there is something new; its thought is shown a moment later.",
            "it thinks; see `local2 monologue show`",
        ),
        "on": ("Switch it on, from now on and after restarts.", "it is switched on"),
        "off": ("Switch it off, from now on and after restarts.", "it is switched off"),
    },
)
