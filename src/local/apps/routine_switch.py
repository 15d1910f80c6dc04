"""What commands of all routines do alike: switch one, have it done now, and say how it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from local.apps.console.answering_system import running_system
from local.apps.terminal import visible


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
