"""Changes which servers stand in `mcp.json`, and leaves everything else in it as it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.config_mcp import FILE_NAME, SERVERS, load_mcp_servers
from local.errors import ConfigError
from local.private_file import write_private

Json = dict[str, Any]


def add_server(folder: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Put a server there, in a file for the eyes of this Unix user alone. Raises `ConfigError` for one that is there
    already, or cannot be used."""
    before = _read(folder)
    if name in load_mcp_servers(folder):
        raise ConfigError(f"{folder / FILE_NAME} has a server {name!r}; take it out with 'local2 mcp remove {name}'")
    _write(folder, {**before, SERVERS: {**before.get(SERVERS, {}), name: dict(entry)}})
    try:
        load_mcp_servers(folder)
    except ConfigError:
        _write(folder, before)
        raise


def remove_server(folder: Path, name: str) -> None:
    """Take a server out. Raises `ConfigError`."""
    before = _read(folder)
    require_server(folder, name, before.get(SERVERS, {}))
    _write(folder, {**before, SERVERS: {each: entry for each, entry in before[SERVERS].items() if each != name}})


def require_server(folder: Path, name: str, known: Mapping[str, Any]) -> None:
    """Raises `ConfigError` that names those that there are."""
    if name not in known:
        raise ConfigError(f"{folder / FILE_NAME} has no server {name!r}; it has: {', '.join(known) or 'none'}")


def _read(folder: Path) -> Json:
    load_mcp_servers(folder)  # which says what is wrong with it
    path = folder / FILE_NAME
    read: Json = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return read


def _write(folder: Path, content: Json) -> None:
    path = (folder / FILE_NAME).resolve()  # a link stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
