"""`local2 goals …`: what you want to get to, and what was said of it while you asked nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found

# What commands of all routines do alike: switch one, have it done now, and say how it is.


def switch_routine(path: str, done: str, api: str | None, data_dir: Path | None) -> None:
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


@dream_app.command()
def now(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have it look back now; what it sees is listed a moment later.

    Example: local2 dream now
    """
    switch_routine("/dreams/now", "it looks back; see `local2 dream list`", api, data_dir)


@dream_app.command()
def on(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it on, from now on and after restarts.

    Example: local2 dream on
    """
    switch_routine("/dreams/on", "it is switched on", api, data_dir)


@dream_app.command()
def off(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it off, from now on and after restarts.

    Example: local2 dream off
    """
    switch_routine("/dreams/off", "it is switched off", api, data_dir)


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


@goal_app.command("now")
def goal_commands_now(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have every goal checked now; what is to be said is listed a moment later.

    Example: local2 goals now
    """
    switch_routine("/goals/now", "they are checked; see `local2 goals list`", api, data_dir)


@goal_app.command("on")
def goal_commands_on(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have goals checked, from now on and after restarts.

    Example: local2 goals on
    """
    switch_routine("/goals/on", "they are checked from now on", api, data_dir)


@goal_app.command("off")
def goal_commands_off(api: ApiOption = None, data_dir: DataDir = None) -> None:
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


@monologue_app.command("now")
def monologue_commands_now(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have it think now, if there is something new; its thought is shown a moment later.

    Example: local2 monologue now
    """
    switch_routine("/monologue/now", "it thinks; see `local2 monologue show`", api, data_dir)


@monologue_app.command("on")
def monologue_commands_on(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it on, from now on and after restarts.

    Example: local2 monologue on
    """
    switch_routine("/monologue/on", "it is switched on", api, data_dir)


@monologue_app.command("off")
def monologue_commands_off(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it off, from now on and after restarts.

    Example: local2 monologue off
    """
    switch_routine("/monologue/off", "it is switched off", api, data_dir)


def _thought_lines(thoughts: list[Json]) -> Iterator[str]:
    for thought in thoughts:
        left_out = f", {thought['left_out']} with words of strangers left out" if thought["left_out"] else ""
        rests = f"(from {len(thought['sources'])} exchanges{left_out})"
        yield f"{date_and_time(thought['at'])}  {visible(thought['text'])}  {rests}"
