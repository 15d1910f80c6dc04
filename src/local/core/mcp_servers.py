"""The file `mcp.json` in the user's settings folder: MCP servers, in the format that other clients share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import ConfigDict, Field, ValidationError, model_validator

from local.core.config import Settings
from local.core.config_file import Values, expanded
from local.core.errors import ConfigError
from local.core.files import write_private

FILE_NAME = "mcp.json"
FOLDER = "mcp"  # in the data directory: the approved state of each server, and its working folder
SERVERS = "mcpServers"

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]  # which no program can be given
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
_LOOPBACK = re.compile(r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}")


Level = Literal["L0", "L1", "L2"]


class MCPToolRule(Settings):
    """The owner's settings for one tool of a server: another level than the server's, or that it is not offered."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    safety: Level | None = None
    disabled: bool = False


class MCPServerConfig(Settings):
    """One entry of `mcpServers`: the command that serves, or the URL of a streamable HTTP server, and below them our
    own settings. Keys of other clients are ignored. `expanded` returns the settings with variables and secrets filled
    in.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: Text = ""
    args: tuple[Text, ...] = ()
    env: dict[Annotated[str, Field(pattern=r"^\w+$")], Text] = Field(default_factory=dict)
    url: Text = ""
    headers: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")], Line] = Field(default_factory=dict)
    network: bool = False
    readable: tuple[Path, ...] = ()
    disabled: bool = False
    safety: Level = "L2"
    tools: dict[str, MCPToolRule] = Field(default_factory=dict)  # by the server's name for it
    category: Literal["read", "write", "search", "shell", "web", "git", "data", "meta", "memory"] = "meta"
    timeout_seconds: float = Field(60, gt=0, le=3600)
    start_seconds: float = Field(30, gt=0, le=600)
    users: tuple[str, ...] = ()  # besides the owner
    skill: Path | None = None  # which has brought it, and the digest of its files as they were approved
    skill_digest: str = ""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("expected a command that serves, or the url of a server, and not both")
        if self.type is not None and (self.type == "stdio") != bool(self.command):
            raise ValueError(f"{self.type} has {'a command' if self.type == 'stdio' else 'a url'}")
        return self

    def safety_of(self, tool: str) -> Level:
        """The level of a tool, by the server's name for it."""
        return (self.tools.get(tool) or MCPToolRule()).safety or self.safety

    def offers(self, tool: str) -> bool:
        """Whether a tool is offered, by the server's name for it."""
        return not self.disabled and not (self.tools.get(tool) or MCPToolRule()).disabled

    def expanded(self, name: str, variable: Values, secret_of: Callable[[str], str]) -> Self:
        """Return the settings with variables and secrets filled in, for the server of this name. Raises `ConfigError`
        for a missing one, which names the key, or a URL that is not allowed.
        """
        plain = partial(_value, name, variable, None)
        secret = partial(_value, name, variable, secret_of)
        said = {
            "command": plain("command", self.command),
            "args": tuple(plain("args", each) for each in self.args),
            "env": {key: secret(f"env.{key}", each) for key, each in self.env.items()},
            "url": plain("url", self.url),
            "headers": {key: secret(f"headers.{key}", each) for key, each in self.headers.items()},
        }
        if self.url:
            _require_safe(f"{FILE_NAME}: {SERVERS}.{name}.url", str(said["url"]))
        return self.model_copy(update=said)


def load_mcp_servers(folder: Path) -> dict[str, MCPServerConfig]:
    """The servers by name; none without the file. Raises `ConfigError`, which names the file and the entry."""
    path = folder / FILE_NAME
    try:
        return mcp_servers_in(path, path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def mcp_servers_in(path: Path, content: bytes) -> dict[str, MCPServerConfig]:
    """The servers by name, as the file at that path contains them. Raises `ConfigError`."""
    try:
        entries = json.loads(content.decode()).get(SERVERS, {})
        return {name: _entry(path, name, entry) for name, entry in entries.items()}
    except (ValueError, AttributeError, RecursionError) as error:
        expected = f'expected {{"{SERVERS}": {{"name": {{"command": "…", "args": […]}}}}}}'
        raise ConfigError(f"{path}: {expected}; {error}") from None


def _entry(path: Path, name: str, entry: object) -> MCPServerConfig:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise ConfigError(f"{path}: {name!r} cannot be a server's name: up to 32 letters, digits, _ and -")
    try:
        return MCPServerConfig.model_validate_json(json.dumps(entry), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (SERVERS, name, *first["loc"])))
        raise ConfigError(f"{path}: {place}: {first['msg']}") from None


def _value(server: str, variable: Values, secret_of: Callable[[str], str] | None, key: str, text: str) -> str:
    try:
        return expanded(text, variable, secret_of)
    except ConfigError as error:
        raise ConfigError(f"{FILE_NAME}: {SERVERS}.{server}.{key}: {error}") from None


def _require_safe(place: str, url: str) -> None:
    """Allow only TLS, or this machine, because requests contain keys and private content."""
    parts = _parts(url)
    if parts is None or parts.username is not None or parts.fragment or parts.scheme not in ("https", "http"):
        raise ConfigError(f"{place}: expected an address such as https://host/mcp, without user and password")
    if not is_private(url):
        raise ConfigError(
            f"{place}: {parts.hostname} is another machine: expected https, because requests contain private content"
        )


def is_private(url: str) -> bool:
    """Whether requests to this address are private: over TLS, or to this machine."""
    parts = _parts(url)
    return parts is not None and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url)))


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    parts = _parts(url)
    host = parts.hostname or "" if parts else ""
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts if parts.hostname else None


def participant_name(server: str) -> str:
    """Return the name of the participant that has a server's tools."""
    return f"mcp_{server}"


def approved_file(data_dir: Path, server: str) -> Path:
    """Return the file with the approved tools of a server."""
    return data_dir / FOLDER / f"{server}.json"


# Changes the servers in `mcp.json`, and leaves everything else unchanged.


def add_server(folder: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Put a server there, in a file for the eyes of this Unix user alone. Raises `ConfigError` for one that is there
    already, or cannot be used."""
    if name in load_mcp_servers(folder):
        raise ConfigError(f"{folder / FILE_NAME} has a server {name!r}; take it out with 'local2 mcp remove {name}'")
    put_server(folder, name, entry)


def put_server(folder: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Put a server there, in place of one of that name. Raises `ConfigError` for one that cannot be used."""
    before = _read(folder)
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


def entry_of(folder: Path, name: str) -> dict[str, Any]:
    """The entry of a server as it is written, with its keys of other clients. Raises `ConfigError`."""
    entries: dict[str, dict[str, Any]] = _read(folder).get(SERVERS, {})
    require_server(folder, name, entries)
    return entries[name]


def require_server(folder: Path, name: str, known: Mapping[str, Any]) -> None:
    """Raises `ConfigError` that names those that there are."""
    if name not in known:
        raise ConfigError(f"{folder / FILE_NAME} has no server {name!r}; it has: {', '.join(known) or 'none'}")


def _read(folder: Path) -> dict[str, Any]:
    load_mcp_servers(folder)  # raises the error in it
    path = folder / FILE_NAME
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return read


def _write(folder: Path, content: dict[str, Any]) -> None:
    path = (folder / FILE_NAME).resolve()  # a link stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None


# Servers as other clients write them, in a text that their owner has copied from somewhere.

_HOLDERS = (SERVERS, "servers", "context_servers", "mcp")  # of Claude and most others; VS Code; Zed; VS Code's settings
_URLS = ("url", "serverUrl", "httpUrl")
_EXPECTED = f'expected JSON such as {{"{SERVERS}": {{"weather": {{"command": "npx", "args": ["weather-mcp"]}}}}}}'


def pasted_servers(text: str) -> dict[str, dict[str, Any]]:
    """Return the entries by name, as `mcp.json` has them: with the keys that are known here, and a usable name. Raises
    `ConfigError` for a text that has none.
    """
    inner = text.strip().strip(",")
    try:
        try:
            read = json.loads(inner)
        except ValueError:
            read = json.loads(f"{{{inner}}}")  # a part of an object
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"this is no JSON ({error}); {_EXPECTED}") from None
    while isinstance(read, dict) and (holder := next((key for key in _HOLDERS if isinstance(read.get(key), dict)), "")):
        read = read[holder]
    if isinstance(read, dict) and ("command" in read or any(key in read for key in _URLS)):
        read = {str(read.get("name") or "server"): read}
    if not isinstance(read, dict) or not read or not all(isinstance(entry, dict) for entry in read.values()):
        raise ConfigError(f"there is no server in this; {_EXPECTED}")
    return {re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:32] or "server": _as_ours(entry) for name, entry in read.items()}


def _as_ours(entry: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(entry.get("command"), dict):  # Zed's
        command = entry["command"]
        entry = {**entry, **command, "command": command.get("path", "")}
    known = {key: value for key, value in entry.items() if key in MCPServerConfig.model_fields and value is not None}
    if (url := next((entry[key] for key in _URLS if entry.get(key)), None)) is not None:
        known |= {"url": url}
    if known.get("type") in ("streamableHttp", "streamable_http"):
        known["type"] = "http"
    if entry.get("enabled") is False:
        known["disabled"] = True
    return {key: value for key, value in known.items() if key not in ("skill", "skill_digest")}


def checked_entry(name: str, entry: Mapping[str, Any]) -> MCPServerConfig:
    """Return the settings of an entry that is not in the file yet. Raises `ConfigError`."""
    return _entry(Path(FILE_NAME), name, entry)
