"""`local2 memory export` and `import`: MEMORY.md, the memory as a file to edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from local.cli.client import SystemClient, running_system
from local.cli.main import ApiOption, ConfigDir, DataDir, UserOption, of_user, visible
from local.core.environment import settings_dir
from local.core.errors import BadQuestion, ConfigError
from local.core.files import write_private

Json = dict[str, Any]
File = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Without one, MEMORY.md in your settings.")]

FILE_NAME = "MEMORY.md"
_SIGNS = {"added": "+", "changed": "~", "removed": "-", "conflict": "!", "refused": "!"}


def add_commands(app: typer.Typer) -> None:
    """Add these commands to those for the memory."""
    app.command("export")(export)
    app.command("import")(read_back)


def export(
    file: File = None,
    force: Annotated[bool, typer.Option("--force", help="Also over changes that were not read back.")] = False,
    user: UserOption = None,
    config_dir: ConfigDir = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Write the facts and notes into a file to edit.

    Example: local2 memory export
    """
    client, path, address = running_system(api, data_dir), _path(file, config_dir, user), of_user("/memory/file", user)
    if path.exists() and not force and _has_changes(client.request("POST", address, {"text": _text(path)})):
        raise BadQuestion(f"{path} has changes that were not read back; `local2 memory import` does, or give --force")
    _write(path, _written(client, address))
    typer.echo(f"{path} is written; edit it, then `local2 memory import`")


def read_back(
    file: File = None,
    yes: Annotated[bool, typer.Option("--yes", help="Without a question.")] = False,
    user: UserOption = None,
    config_dir: ConfigDir = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show the changes in that file and, if you agree, apply them to the memory.

    Example: local2 memory import
    """
    client, path, address = running_system(api, data_dir), _path(file, config_dir, user), of_user("/memory/file", user)
    text = _text(path)
    found = client.request("POST", address, {"text": text})
    typer.echo("\n".join(_lines(found)) or "nothing is changed in it")
    if not _is_any_done(found):
        raise typer.Exit(1 if _has_changes(found) else 0)
    if not yes and not typer.confirm("Change the memory so?"):
        raise typer.Exit(1)
    done = client.request("POST", address, {"text": text, "apply": True})
    kept = path.with_name(f"{path.name}.old")
    _write(kept, text)
    _write(path, _written(client, address))
    typer.echo(f"done; {path} is written again; the earlier version is {kept.name}")
    if _unsettled(done):
        raise typer.Exit(1)


def _path(file: Path | None, config_dir: Path | None, user: str | None) -> Path:
    name = FILE_NAME if user is None else f"MEMORY.{user}.md"
    return settings_dir(config_dir) / name if file is None else file.expanduser()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}; `local2 memory export` writes it") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8; save it in that encoding") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None


def _written(client: SystemClient, address: str) -> str:
    return str(client.request("GET", address)["text"])


def _has_changes(found: Json) -> bool:
    return bool(found["outcomes"] or found["problems"])


def _is_any_done(found: Json) -> bool:
    return any(each["what"] in ("added", "changed", "removed") for each in found["outcomes"])


def _unsettled(found: Json) -> bool:
    return bool(found["problems"]) or any(each["what"] in ("conflict", "refused") for each in found["outcomes"])


def _lines(found: Json) -> Iterator[str]:
    for each in found["outcomes"]:
        told = " → ".join(filter(None, (each["before"], each["text"])))
        why = f"  ({each['what']}: {each['why']})" if each["why"] else ""
        yield visible(f"{_SIGNS[each['what']]} {each['kind']}  {told}{why}")
    yield from (visible(f"? {problem}") for problem in found["problems"])
