"""`local2 prompt`: what the model is told."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir, JsonOption

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
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="As this kind of assistant.")] = None,
    as_json: JsonOption = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Print what the model gets before a question, with where it is from and what it costs: of the system that runs,
    else by the settings. With a session, the messages."""
    from local.apps.prompt import as_text, in_words, messages, sections

    if session is not None:
        told = messages(prompt, session, config_dir, data_dir)
        typer.echo(json.dumps(list(told), ensure_ascii=False, indent=1) if as_json else as_text(told))
        return
    shown = sections(prompt, profile, config_dir, data_dir)
    typer.echo(json.dumps(shown, ensure_ascii=False, indent=1) if as_json else in_words(shown))
