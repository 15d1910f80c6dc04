"""`local2 completion SHELL`: what has a shell complete commands and options at the Tab key."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined] # re-exported on purpose

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LOCAL2_COMPLETE"  # set where the shell asks, as typer's scripts do it


def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a script that has a shell complete the commands and options of local2.

    Example: local2 completion bash >> ~/.bashrc; for fish: local2 completion fish >
    ~/.config/fish/completions/local2.fish
    """
    if shell not in SHELLS:
        raise typer.BadParameter(f"{shell!r} is none of {', '.join(SHELLS)}", param_hint="SHELL")
    typer.echo(get_completion_script(prog_name="local2", complete_var=VARIABLE, shell=shell))
