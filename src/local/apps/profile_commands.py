"""`local2 profiles …`: which kinds of assistant there are, and what each is told and may use."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from local.apps.command_line import ConfigDir, DataDir, JsonOption
from local.apps.terminal import visible
from local.config import layers_for, load_system
from local.environment import data_dir as find_data_dir
from local.environment import environment
from local.instructions.built_in_profiles import ALIASES
from local.instructions.profile_registry import ProfileRegistry, Profiles
from local.runtime.participant import WORKSPACE

profile_app = typer.Typer(help="Kinds of assistants: list, show.")


@profile_app.command("list")
def list_profiles(as_json: JsonOption = False, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """List them, and a line for each file that is no good."""
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
    """Print what one is told, and what it may use.

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
