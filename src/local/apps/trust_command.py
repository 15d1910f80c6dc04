"""`local2 trust`: the folders that the assistant works in where a command is typed in them, and that instruct it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir
from local.apps.terminal import echo_listed, visible
from local.environment import data_dir as find_data_dir
from local.environment import environment, settings_dir
from local.errors import BadQuestion, ConfigError
from local.trust.trust_registry import TrustRegistry
from local.trust.workspace_instructions import FILE, FOLDER, read_instructions
from local.trust.workspace_profiles import AGENTS, read_profiles


def trust(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder (default: this one).")] = Path(),
    listing: Annotated[bool, typer.Option("--list", help="Show which are trusted.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Trust it no longer.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Without a question: you know what it instructs.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Trust a folder: `local2 ask` and `chat` work in it where they start a system, its files count as yours though it
    was cloned, and what it instructs in .local2/LOCAL2.md counts, as it is now."""
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
    from local.apps.workspace_folder import require_allowed
    from local.config import layers_for, load_system  # which take time to import

    layers = layers_for(config_dir)
    require_allowed(folder, load_system(layers, {}, environment()), data_dir, layers)
