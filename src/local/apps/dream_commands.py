"""`local2 dream …`: what was seen in your conversations while you asked nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from local.apps.command_line import ApiOption, DataDir, JsonOption
from local.apps.console.answering_system import running_system
from local.apps.routine_switch import routine_line, switch_routine
from local.apps.terminal import date_and_time, visible, write_found

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
