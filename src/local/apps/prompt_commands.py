"""`local2 prompt`: what the model is told."""

from __future__ import annotations

from typing import Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir

prompt_app = typer.Typer(help="What the model is told.")


@prompt_app.callback()
def prompt_callback() -> None:
    """What the model is told."""


@prompt_app.command("show")
def show_prompt(
    prompt: Annotated[str | None, typer.Option(metavar="NAME", help="A variant of generator.yaml.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="With this session of a running system; its beginning will do.")
    ] = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Print what the model gets before a question."""
    from local.apps.prompt import show

    typer.echo(show(prompt, session, config_dir, data_dir))
