"""`local2 dream …`: what was seen in your conversations while you asked nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from local.apps.command_line import ApiOption, DataDir, JsonOption
from local.apps.console.answering_system import running_system
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
    _tell(api, data_dir, "now", "it looks back; see `local2 dream list`")


@dream_app.command()
def on(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it on, from now on and after restarts.

    Example: local2 dream on
    """
    _tell(api, data_dir, "on", "it is switched on")


@dream_app.command()
def off(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Switch it off, from now on and after restarts.

    Example: local2 dream off
    """
    _tell(api, data_dir, "off", "it is switched off")


def _tell(api: ApiOption, data_dir: DataDir, verb: str, done: str) -> None:
    state = running_system(api, data_dir).request("POST", f"/dreams/{verb}")
    why = f"not now: {state['why']}" if verb == "now" and state["why"] else done
    typer.echo(visible(why))


def _state_line(state: Json) -> str:
    last = f"dreamt {date_and_time(state['done_at'])}" if state["done_at"] else "has not dreamt yet"
    waits = f", waits for: {visible(state['why'])}" if state["why"] else ""
    return f"{last}, {state['tokens_today']} of {state['tokens_per_day']} tokens today{waits}"


def _dream_lines(dreams: list[Json]) -> Iterator[str]:
    for dream in dreams:
        sources = ", ".join(each[:8] for each in dream["sources"])
        yield f"{dream['engram_id'][:8]}  {date_and_time(dream['until'])}  {visible(dream['text'])}  (from {sources})"
