"""`local2 skills …`: what the model can read up on when a task needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.apps.command_line import ApiOption, ConfigDir, DataDir, JsonOption
from local.apps.console.answering_system import running_system
from local.apps.skill_tool_commands import tools
from local.apps.skill_version_commands import add_commands
from local.apps.terminal import visible, write_found, write_lines
from local.environment import settings_dir

Json = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As `local2 skills list` shows it.")]

skills_app = typer.Typer(
    help="Skills, texts on how something is done: list, show, new, check, approve, tools, proposal."
)
add_commands(skills_app)
skills_app.command()(tools)


@skills_app.command("list")
def list_skills(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the skills of a running system, each with its status and what is wrong with it.

    Example: local2 skills list
    """
    found = running_system(api, data_dir).request("GET", "/skills")
    nothing = f"there are no skills; `local2 skills new NAME` makes one in {' or '.join(found['places'][:1])}"
    write_found(found, _lines(found["skills"]), as_json=as_json, nothing=nothing)


@skills_app.command()
def show(name: Name, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show what a skill says, as the model reads it.

    Example: local2 skills show meeting-notes
    """
    found = running_system(api, data_dir).request("GET", f"/skills/{quote(name, safe='')}")
    lines = [visible(found["folder"]), *(visible(file) for file in found["files"]), ""]
    write_found(found, [*lines, *map(visible, found["text"].splitlines())], as_json=as_json, nothing="")


@skills_app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")],
    description: Annotated[
        str, typer.Option("--description", "-d", help="What it is for, and when to use it: by this the model chooses.")
    ] = "What this skill does. Use it when …",
    config_dir: ConfigDir = None,
) -> None:
    """Make a skill to be written on, in the folder skills of your settings.

    Example: local2 skills new meeting-notes -d "Write notes of a meeting. Use it when the user names one."
    """
    from local.tools.skill_tools.skill_folder import new_skill

    write_lines([str(new_skill(settings_dir(config_dir), name, description))])


@skills_app.command()
def check(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER]…", help="Those of skills; without any, all of your own.")
    ] = None,
    config_dir: ConfigDir = None,
) -> None:
    """Say whether skills can be used, and what is wrong with those that cannot. No system needs to run.

    Example: local2 skills check ./my-skill
    """
    from local.tools.skill_tools.skill_folder import checked

    found = checked(folders or [], settings_dir(config_dir))
    write_lines(f"{visible(each.folder.name)}: {each.fault or 'ready'}{_tools(each.tools)}" for each in found)
    if any(each.fault for each in found):
        raise typer.Exit(1)


@skills_app.command()
def approve(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of a skill in the workspace or in skill_folders.")],
    yes: Annotated[bool, typer.Option("--yes", help="Without a question: you know what it says.")] = False,
    config_dir: ConfigDir = None,
) -> None:
    """Read a skill that others may have written, and have it used as it is now; a change asks again.

    Example: local2 skills approve .local2/skills/release-notes
    """
    from local.tools.skill_tools import skill_folder

    contents = skill_folder.to_approve(folder)
    for path, content in sorted(contents.items()):
        typer.echo(f"{visible(path)} ({len(content)} bytes)")
        if path.endswith(".md"):
            typer.echo("\n".join(f"    {visible(line)}" for line in content.decode("utf-8", "replace").splitlines()))
    if not yes and not typer.confirm("Have the model told this where a task needs it?"):
        raise typer.Exit(1)
    skill_folder.approve(settings_dir(config_dir), folder, contents)
    typer.echo("approved, as it is now")


def _tools(leave: str) -> str:
    return f"; its tools: {visible(leave)}" if leave else ""


def _lines(skills: list[Json]) -> Iterator[str]:
    for skill in skills:
        why = skill["error"] or skill["description"]
        yield f"{skill['status']:10}  {visible(skill['name'])}  {visible(why)}{_tools(skill['tools'])}"
