"""`local2 trust`: the folders that the assistant works in where a command is typed in them, and that instruct it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from local.cli.main import ConfigDir, DataDir, JsonOption, echo_listed, visible
from local.cli.text_versions import approved, history_lines, proposal_lines
from local.core.config import layers_for, load_system
from local.core.environment import data_dir as find_data_dir
from local.core.environment import environment, settings_dir
from local.core.errors import BadQuestion, ConfigError
from local.core.profiles import ALIASES, ProfileRegistry, Profiles
from local.core.trust import AGENTS, FILE, FOLDER, TrustRegistry, read_instructions, read_profiles
from local.core.versioned_text import Soul, TextProposals
from local.core.workspace import WORKSPACE

# `local2 profiles …`: the kinds of assistant, each with its text and its tools.

profile_app = typer.Typer(help="Kinds of assistants: list, show.")


@profile_app.command("list")
def list_profiles(as_json: JsonOption = False, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """List the profiles, and a line for each invalid file."""
    found = _found(config_dir, data_dir)
    if as_json:
        listed = [asdict(profile) for profile in found.by_name.values()]
        typer.echo(json.dumps({"profiles": listed, "problems": found.problems}, ensure_ascii=False))
        return
    for profile in found.by_name.values():
        typer.echo(f"{profile.name:12} {visible(profile.description)}  ({visible(profile.origin)})")
    for problem in found.problems:
        typer.echo(f"! {visible(problem)}")


@profile_app.command()
def show(name: str, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Print a profile's text and tools.

    Example: local2 profiles show code
    """
    profile = _found(config_dir, data_dir).find(name)
    aliases = [alias for alias, meant in ALIASES.items() if meant == profile.name]
    told = {
        "name": ", ".join([profile.name, *aliases]),
        "description": profile.description,
        "from": profile.origin,
        "tools": "all" if profile.tools is None else ", ".join(profile.tools),
        "model": profile.model,
        "temperature": profile.temperature,
        "max_tokens": profile.max_tokens,
    }
    lines = [f"{key:12} {visible(str(value))}" for key, value in told.items() if value is not None]
    text = [visible(line) for line in profile.instructions.splitlines()]
    typer.echo("\n".join([*lines, *(["", *text] if text else [])]))


def _found(config_dir: Path | None, data_dir: Path | None) -> Profiles:
    layers = layers_for(config_dir)
    named = load_system(layers, {}, environment()).workspace
    return ProfileRegistry(layers[-1], named.expanduser() if named else find_data_dir(data_dir) / WORKSPACE).read()


# The lines in which a text's versions and its proposed change are shown at a terminal.


# `local2 soul …`: the owner's text on the assistant's character, version by version.

Number = Annotated[int, typer.Argument(metavar="VERSION", help="As `local2 soul history` numbers them.", min=1)]

soul_app = typer.Typer(help="The assistant's character, in SOUL.md: show, history, revert, proposal.")


@soul_app.command("show")
def soul_commands_show(
    version: Annotated[int | None, typer.Option(min=1, help="An earlier one.")] = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Print the text, in its present or an earlier version.

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
    """Restore a version; the present text stays as one.

    Example: local2 soul revert 2
    """
    soul = Soul(settings_dir(config_dir), find_data_dir(data_dir))
    soul.revert(number)
    typer.echo(f"{soul.path} is as version {number} was, from the next question on")


@soul_app.command()
def proposal(
    approve: Annotated[bool, typer.Option("--approve", help="Have the soul become that.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Leave it as it is.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking for confirmation.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show the change that the dreamer proposes, if any; approve it, or reject it.

    Example: local2 soul proposal --approve
    """
    if approve and reject:
        raise BadQuestion("give one of --approve and --reject")
    soul = Soul(settings_dir(config_dir), find_data_dir(data_dir))
    proposals = TextProposals(soul)
    if approve:
        by = approved(proposals, yes=yes).by
        typer.echo(f"{soul.path} is as {visible(by)} proposed; `local2 soul revert` goes back")
    elif reject:
        proposals.reject()
        typer.echo("rejected")
    elif waiting := proposals.waiting():
        typer.echo("\n".join(proposal_lines(waiting)))
    else:
        typer.echo("no change is proposed")


def trust(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder (default: this one).")] = Path(),
    listing: Annotated[bool, typer.Option("--list", help="List the trusted folders.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Trust it no longer.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Without a question: you know what it instructs.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Trust a folder: `local2 ask` and `chat` work in it when they start a system from there, its files count as yours
    even if it was cloned, and the present instructions in its .local2/LOCAL2.md are used.
    """
    if listing and remove:
        raise BadQuestion("give one of --list and --remove")
    registry = TrustRegistry(settings_dir(config_dir))
    if listing:
        echo_listed(_lines(registry), "no folder is trusted")
    elif remove:
        registry.distrust(folder)
        typer.echo(f"{folder.resolve()} is trusted no longer")
    else:
        _trust(registry, folder.resolve(), config_dir, find_data_dir(data_dir), yes=yes)


def _lines(registry: TrustRegistry) -> Iterator[str]:
    for path, entry in registry.all().items():
        folder = Path(path)
        state = registry.instructions(folder).refused or registry.profiles(folder).refused
        yield f"{visible(path)}  since {entry.trusted_at}" + (f"  ({visible(state)})" if state else "")


def _trust(registry: TrustRegistry, folder: Path, config_dir: Path | None, data_dir: Path, *, yes: bool) -> None:
    _require_workspace(folder, config_dir, data_dir)
    seen, profiles = read_instructions(folder), read_profiles(folder)
    if refused := seen.refused or profiles.refused:
        raise ConfigError(refused)
    texts = [(folder / FOLDER / FILE, seen.text)] if seen.text else []
    texts += [(folder / FOLDER / AGENTS / name, text) for name, text in profiles.files]
    for path, text in texts:
        typer.echo(f"{visible(str(path))} instructs:")
        typer.echo("\n".join(f"    {visible(line)}" for line in text.splitlines()))
    if texts and not yes and not typer.confirm("Trust this folder, and have the assistant told this?"):
        raise typer.Exit(1)
    registry.trust(folder, seen, profiles)
    typer.echo(f"{folder} is trusted; `local2 trust --remove` takes it back")


def _require_workspace(folder: Path, config_dir: Path | None, data_dir: Path) -> None:
    """Raises `ConfigError` for what no system could work in."""
    from local.core.config import (
        layers_for,  # which take time to import
        load_system,  # which take time to import
    )
    from local.core.workspace import require_allowed

    layers = layers_for(config_dir)
    require_allowed(folder, load_system(layers, {}, environment()), data_dir, layers)
