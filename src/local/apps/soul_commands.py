"""`local2 soul …`: the assistant's character and what it knows of its user, version by version."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir, JsonOption
from local.apps.text_lines import history_lines, proposal_lines
from local.environment import data_dir as find_data_dir
from local.environment import settings_dir
from local.errors import BadQuestion
from local.instructions.soul import Soul
from local.instructions.text_proposal import TextProposals

Number = Annotated[int, typer.Argument(metavar="VERSION", help="As `local2 soul history` numbers them.", min=1)]

soul_app = typer.Typer(help="The assistant's character, in SOUL.md: show, history, revert, proposal.")


@soul_app.command()
def show(
    version: Annotated[int | None, typer.Option(min=1, help="An earlier one.")] = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Print what the model is told, as it is now or was.

    Example: local2 soul show --version 2
    """
    soul = Soul(settings_dir(config_dir), find_data_dir(data_dir))
    text = soul.text()
    if version is not None:
        text = soul.history.version(version).text
    typer.echo(text or f"there is no soul yet: write {soul.path}")


@soul_app.command()
def history(as_json: JsonOption = False, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """List its versions, the latest first: when, by whom, and how many lines came and went."""
    soul = Soul(settings_dir(config_dir), find_data_dir(data_dir))
    soul.text()
    kept = soul.history.versions()
    if as_json:
        typer.echo(json.dumps({"versions": [asdict(each) for each in kept]}, ensure_ascii=False))
        return
    for line in history_lines(kept):
        typer.echo(line)
    if not kept:
        typer.echo(f"no version is kept yet: write {soul.path}")


@soul_app.command()
def revert(number: Number, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Go back to a version; what there is now stays one.

    Example: local2 soul revert 2
    """
    soul = Soul(settings_dir(config_dir), find_data_dir(data_dir))
    soul.revert(number)
    typer.echo(f"{soul.path} is as version {number} was, from the next question on")


@soul_app.command()
def proposal(
    approve: Annotated[bool, typer.Option("--approve", help="Have the soul become that.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Leave it as it is.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show what the dreamer would change, if anything; approve it, or reject it.

    Example: local2 soul proposal --approve
    """
    if approve and reject:
        raise BadQuestion("give one of --approve and --reject")
    soul = Soul(settings_dir(config_dir), find_data_dir(data_dir))
    proposals = TextProposals(soul)
    if approve:
        typer.echo(f"{soul.path} is as {proposals.approve().by} proposed; `local2 soul revert` goes back")
    elif reject:
        proposals.reject()
        typer.echo("rejected")
    elif waiting := proposals.waiting():
        typer.echo("\n".join(proposal_lines(waiting)))
    else:
        typer.echo("no change is proposed")
