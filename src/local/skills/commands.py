"""`local2 skills …`: instructions that the model reads when a task needs them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from local.cli.client import running_system, taken_over
from local.cli.main import ApiOption, ConfigDir, DataDir, JsonOption, visible, write_found, write_lines
from local.cli.text_versions import approved, history_lines, proposal_lines
from local.core.config import layers_for
from local.core.environment import data_dir as find_data_dir
from local.core.environment import settings_dir
from local.core.errors import BadQuestion, ConfigError
from local.core.mcp_servers import add_server, approved_file, load_mcp_servers, participant_name, remove_server
from local.core.versioned_text import TextProposals, VersionedText

if TYPE_CHECKING:
    from local.core.mcp_servers import MCPServerConfig


# `local2 skills tools`: show, approve and withdraw the tools that a skill brings.


def tools(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a skill that contains an mcp.json.")],
    take_back: Annotated[bool, typer.Option("--remove", help="Withdraw the approval.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking for confirmation.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show the tools that a skill brings and approve them. After a change they must be approved again.

    Example: local2 skills tools ~/.config/local2/skills/weather
    """
    from local.cli.command_table import function_of
    from local.skills.tools import servers_of

    settings, data = layers_for(config_dir)[-1], find_data_dir(data_dir)
    if take_back:
        _forget(settings, data, folder.resolve())
        return
    servers = servers_of(folder)
    if not servers:
        raise ConfigError(f"{folder} has no tools: it contains no mcp.json")
    for name, server in servers.items():
        typer.echo(f"{name}: {visible(' '.join((server.command, *server.args)))}")
    if not yes and not typer.confirm("Start this in a sandbox, without a network, to see its tools?"):
        raise typer.Exit(1)
    _forget(settings, data, folder.resolve(), servers)  # the approved one was another
    approve = function_of("mcp", "approve")
    for name, server in servers.items():
        add_server(settings, name, server.model_dump(mode="json", exclude_unset=True))
        try:
            approve(name, yes, config_dir, data_dir)
        except BaseException:
            remove_server(settings, name)
            raise


def _forget(settings: Path, data: Path, folder: Path, renewed: Collection[str] = ()) -> None:
    """`renewed` are those that are reviewed again now, so that a running system is informed later."""
    for name in _of(settings, folder):
        approved_file(data, name).unlink(missing_ok=True)
        remove_server(settings, name)
        typer.echo(f"{name} is no longer offered" + ("" if name in renewed else f"; {_taken_over(name, data)}"))


def _taken_over(server: str, data: Path) -> str:
    return taken_over(participant_name(server), data)


def _of(settings: Path, folder: Path) -> dict[str, MCPServerConfig]:
    """Return the servers that this skill has brought."""
    return {name: server for name, server in load_mcp_servers(settings).items() if server.skill == folder}


# `local2 skills proposal`, `history` and `revert`: changes of skills that the dreamer proposes, and how to undo them.

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a skill for which a change was proposed.")]
Number = Annotated[
    int, typer.Argument(metavar="VERSION", help="Number of a version, as `local2 skills history` shows it.", min=1)
]


def add_commands(app: typer.Typer) -> None:
    """Add these commands to those for skills."""
    for command in (proposal, history, revert):
        app.command()(command)


def proposal(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of a skill (default: all with a proposal).")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Apply the proposal.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Discard the proposal.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking for confirmation.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show changed or new skills that the dreamer proposes; approve or reject one.

    Example: local2 skills proposal meeting-notes --approve
    """
    if (approve or reject) and (not name or (approve and reject)):
        raise BadQuestion("name one skill, and give one of --approve and --reject")
    if approve:
        skill = _skill(name, config_dir, data_dir)
        by = approved(TextProposals(skill), yes=yes).by
        typer.echo(
            f"{skill.path} was changed as {visible(by)} proposed; undo it with `local2 skills revert {name} VERSION`"
        )
    elif reject:
        TextProposals(_skill(name, config_dir, data_dir)).reject()
        typer.echo("rejected")
    else:
        skills = [_skill(name, config_dir, data_dir)] if name else _skills(config_dir, data_dir)
        typer.echo("\n".join(_waiting(skills)) or "there is no proposal")


def history(name: Name, as_json: JsonOption = False, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """List the versions of a skill, the latest first: date, author, and lines added and removed.

    Example: local2 skills history meeting-notes
    """
    skill = _skill(name, config_dir, data_dir)
    skill.text()
    kept = skill.history.versions()
    if as_json:
        typer.echo(json.dumps({"versions": [asdict(each) for each in kept]}, ensure_ascii=False))
        return
    typer.echo("\n".join(history_lines(kept)) or "there are no versions yet")


def revert(name: Name, number: Number, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Restore an earlier version of a skill. The current text is kept as a version.

    Example: local2 skills revert meeting-notes 1
    """
    skill = _skill(name, config_dir, data_dir)
    skill.revert(number)
    typer.echo(f"{skill.path} was restored to version {number}; the next question uses it")


def _skill(name: str, config_dir: Path | None, data_dir: Path | None) -> VersionedText:
    from local.skills.tools import skill_text

    return skill_text(settings_dir(config_dir), find_data_dir(data_dir), name)


def _skills(config_dir: Path | None, data_dir: Path | None) -> list[VersionedText]:
    from local.skills.tools import skill_texts

    return skill_texts(settings_dir(config_dir), find_data_dir(data_dir))


def _waiting(skills: list[VersionedText]) -> Iterator[str]:
    for skill in skills:
        if (waiting := TextProposals(skill).waiting()) is not None:
            yield str(skill.path)
            yield from proposal_lines(waiting)


Json = dict[str, Any]
SkillCommandsName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a skill, as `local2 skills list` shows it.")
]

skills_app = typer.Typer(
    help="Skills, instructions for kinds of tasks: list, show, new, check, approve, tools, proposal."
)
add_commands(skills_app)
skills_app.command()(tools)


@skills_app.command("list")
def list_skills(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """List the skills of the running system with their status and problems.

    Example: local2 skills list
    """
    found = running_system(api, data_dir).request("GET", "/skills")
    nothing = f"there are no skills; `local2 skills new NAME` makes one in {' or '.join(found['places'][:1])}"
    write_found(found, _lines(found["skills"]), as_json=as_json, nothing=nothing)


@skills_app.command()
def show(name: SkillCommandsName, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the text of a skill, as the model reads it.

    Example: local2 skills show meeting-notes
    """
    found = running_system(api, data_dir).request("GET", f"/skills/{quote(name, safe='')}")
    lines = [visible(found["folder"]), *(visible(file) for file in found["files"]), ""]
    write_found(found, [*lines, *map(visible, found["text"].splitlines())], as_json=as_json, nothing="")


@skills_app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")],
    description: Annotated[
        str,
        typer.Option(
            "--description", "-d", help="What the skill is for and when to use it. The model chooses by this text."
        ),
    ] = "What this skill does. Use it when …",
    config_dir: ConfigDir = None,
) -> None:
    """Create a skill to edit, in the folder skills of your settings.

    Example: local2 skills new meeting-notes -d "Write notes of a meeting. Use it when the user names one."
    """
    from local.skills.tools import new_skill

    write_lines([str(new_skill(settings_dir(config_dir), name, description))])


@skills_app.command()
def check(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER]…", help="Folders of skills (default: all of your own).")
    ] = None,
    config_dir: ConfigDir = None,
) -> None:
    """Check whether skills can be used, and report the problems. The system need not be running.

    Example: local2 skills check ./my-skill
    """
    from local.skills.tools import checked

    found = checked(folders or [], settings_dir(config_dir))
    write_lines(f"{visible(each.folder.name)}: {each.fault or 'ready'}{_tools(each.tools)}" for each in found)
    if any(each.fault for each in found):
        raise typer.Exit(1)


@skills_app.command()
def approve(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of a skill in the workspace or in skill_folders.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking for confirmation.")] = False,
    config_dir: ConfigDir = None,
) -> None:
    """Show a skill that others may have written, with every text that the model may read, and approve it. After a
    change it must be approved again.

    Example: local2 skills approve .local2/skills/release-notes
    """
    from local.skills import tools as skill_folder

    contents = skill_folder.to_approve(folder)
    for path, content in sorted(contents.items()):
        try:
            lines = content.decode("utf-8-sig").splitlines()  # as the model is shown it
        except UnicodeDecodeError:
            typer.echo(f"{visible(path)} ({len(content)} bytes, not text)")
            continue
        typer.echo("\n".join([f"{visible(path)} ({len(content)} bytes)", *(f"    {visible(line)}" for line in lines)]))
    if not yes and not typer.confirm("Approve this skill?"):
        raise typer.Exit(1)
    skill_folder.approve(settings_dir(config_dir), folder, contents)
    typer.echo("approved")


def _tools(leave: str) -> str:
    return f"; its tools: {visible(leave)}" if leave else ""


def _lines(skills: list[Json]) -> Iterator[str]:
    for skill in skills:
        why = skill["error"] or skill["description"]
        yield f"{skill['status']:10}  {visible(skill['name'])}  {visible(why)}{_tools(skill['tools'])}"
