"""`mcp.json` in the user's folder of settings: servers of tools, in the format that others share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from local.config import Settings
from local.errors import ConfigError

FILE_NAME = "mcp.json"
SERVERS = "mcpServers"

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]  # which no program can be given


class MCPServerConfig(Settings):
    """One of `mcpServers`: the command that serves, and below it what only we know. Keys of other clients are left
    alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    command: Annotated[Text, Field(min_length=1)]
    args: tuple[Text, ...] = ()
    env: dict[Annotated[str, Field(pattern=r"^\w+$")], Text] = Field(default_factory=dict)
    network: bool = False
    readable: tuple[Path, ...] = ()
    safety: Literal["L0", "L1", "L2"] = "L2"
    category: Literal["read", "write", "search", "shell", "web", "git", "data", "meta", "memory"] = "meta"
    timeout_seconds: float = Field(60, gt=0, le=3600)
    start_seconds: float = Field(30, gt=0, le=600)


def load_mcp_servers(folder: Path) -> dict[str, MCPServerConfig]:
    """The servers by name; none without the file. Raises `ConfigError`, which names the file and the entry."""
    path = folder / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
        entries = json.loads(text).get(SERVERS, {})
        return {name: _entry(path, name, entry) for name, entry in entries.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError) as error:
        expected = f'expected {{"{SERVERS}": {{"name": {{"command": "…", "args": […]}}}}}}'
        raise ConfigError(f"{path}: {expected}; {error}") from None


def _entry(path: Path, name: str, entry: object) -> MCPServerConfig:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise ConfigError(f"{path}: {name!r} cannot be a server's name: up to 32 letters, digits, _ and -")
    if isinstance(entry, dict) and "url" in entry and "command" not in entry:
        raise ConfigError(
            f"{path}: {SERVERS}.{name}: a server at a url cannot be used yet, only one that a command starts"
        )
    try:
        return MCPServerConfig.model_validate_json(json.dumps(entry), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (SERVERS, name, *first["loc"])))
        raise ConfigError(f"{path}: {place}: {first['msg']}") from None
