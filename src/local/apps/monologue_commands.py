"""`local2 monologue …`: what was thought while you asked nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from local.apps.command_line import ApiOption, DataDir, JsonOption
from local.apps.console.answering_system import running_system
from local.apps.routine_switch import routine_line, switch_routine
from local.apps.terminal import date_and_time, visible, write_found

Json = dict[str, Any]

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


@monologue_app.command()
def now(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have it think now, if there is something new; its thought is shown a moment later.

    Example: local2 monologue now
    """
    switch_routine("/monologue/now", "it thinks; see `local2 monologue show`", api, data_dir)


@monologue_app.command()
def on(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it on, from now on and after restarts.

    Example: local2 monologue on
    """
    switch_routine("/monologue/on", "it is switched on", api, data_dir)


@monologue_app.command()
def off(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it off, from now on and after restarts.

    Example: local2 monologue off
    """
    switch_routine("/monologue/off", "it is switched off", api, data_dir)


def _thought_lines(thoughts: list[Json]) -> Iterator[str]:
    for thought in thoughts:
        left_out = f", {thought['left_out']} with words of strangers left out" if thought["left_out"] else ""
        rests = f"(from {len(thought['sources'])} exchanges{left_out})"
        yield f"{date_and_time(thought['at'])}  {visible(thought['text'])}  {rests}"
