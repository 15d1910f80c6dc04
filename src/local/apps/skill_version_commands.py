"""`local2 skills proposal`, `history` and `revert`: what the dreamer would change of skills, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir, JsonOption
from local.apps.terminal import visible
from local.apps.text_lines import history_lines, proposal_lines
from local.environment import data_dir as find_data_dir
from local.environment import settings_dir
from local.errors import BadQuestion
from local.instructions.text_proposal import TextProposals
from local.instructions.versioned_text import VersionedText

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of a skill of which a change was proposed.")]
Number = Annotated[int, typer.Argument(metavar="VERSION", help="As `local2 skills history` numbers them.", min=1)]


def add_commands(app: typer.Typer) -> None:
    """Add these commands to those for skills."""
    for command in (proposal, history, revert):
        app.command()(command)


def proposal(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Of a skill; without one, all that waits.")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Have the skill become that.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Leave it as it is.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show which skills the dreamer would change or make, if any; approve one, or reject it.

    Example: local2 skills proposal meeting-notes --approve
    """
    if (approve or reject) and (not name or (approve and reject)):
        raise BadQuestion("name one skill, and give one of --approve and --reject")
    if approve:
        skill = _skill(name, config_dir, data_dir)
        by = TextProposals(skill).approve().by
        typer.echo(f"{skill.path} is as {visible(by)} proposed; `local2 skills revert {name}` goes back")
    elif reject:
        TextProposals(_skill(name, config_dir, data_dir)).reject()
        typer.echo("rejected")
    else:
        skills = [_skill(name, config_dir, data_dir)] if name else _skills(config_dir, data_dir)
        typer.echo("\n".join(_waiting(skills)) or "no change is proposed")


def history(name: Name, as_json: JsonOption = False, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """List the versions of a skill, the latest first: when, by whom, and how many lines came and went.

    Example: local2 skills history meeting-notes
    """
    skill = _skill(name, config_dir, data_dir)
    skill.text()
    kept = skill.history.versions()
    if as_json:
        typer.echo(json.dumps({"versions": [asdict(each) for each in kept]}, ensure_ascii=False))
        return
    typer.echo("\n".join(history_lines(kept)) or "no version is kept yet")


def revert(name: Name, number: Number, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Go back to a version of a skill; what there is now stays one.

    Example: local2 skills revert meeting-notes 1
    """
    skill = _skill(name, config_dir, data_dir)
    skill.revert(number)
    typer.echo(f"{skill.path} is as version {number} was, from the next question on")


def _skill(name: str, config_dir: Path | None, data_dir: Path | None) -> VersionedText:
    from local.tools.skill_tools.skill_texts import skill_text

    return skill_text(settings_dir(config_dir), find_data_dir(data_dir), name)


def _skills(config_dir: Path | None, data_dir: Path | None) -> list[VersionedText]:
    from local.tools.skill_tools.skill_texts import skill_texts

    return skill_texts(settings_dir(config_dir), find_data_dir(data_dir))


def _waiting(skills: list[VersionedText]) -> Iterator[str]:
    for skill in skills:
        if (waiting := TextProposals(skill).waiting()) is not None:
            yield str(skill.path)
            yield from proposal_lines(waiting)
