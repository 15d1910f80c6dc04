"""A tool of a server as its owner has approved it: the model is told this, and never what the server says later."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from local.errors import ConfigError
from local.private_file import write_private

Change = Literal["as approved", "changed", "new", "gone"]

NAME_CHARS = 64
DESCRIPTION_CHARS = 4000


@dataclass(frozen=True, slots=True)
class ApprovedTool:
    """`name` is what the model calls it, `server_name` what its server does; `digest` is the SHA-256 of all that the
    server says of it."""

    name: str
    server_name: str
    description: str
    parameters: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, server: str, told: Mapping[str, Any]) -> Self:
        """A tool as a server tells of it now. The name begins with the server's, so that it is none of ours."""
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{told['name']}")[:NAME_CHARS]
        said = (told.get("description") or told["name"])[:DESCRIPTION_CHARS]
        return cls(name, told["name"], said, told["inputSchema"], digest_of(told))


def digest_of(told: Mapping[str, Any]) -> str:
    """The SHA-256 of everything that is said of a tool."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def approvable(server: str, told: Iterable[Mapping[str, Any]]) -> tuple[list[ApprovedTool], list[str]]:
    """The tools that a server tells, and why some of them cannot be used: two have one name."""
    tools: dict[str, ApprovedTool] = {}
    refused = []
    for each in told:
        tool = ApprovedTool.of(server, each)
        if tool.name in tools:
            refused.append(f"{tool.server_name!r}: another tool is called {tool.name}, too")
        else:
            tools[tool.name] = tool
    return list(tools.values()), refused


def changes(before: Iterable[ApprovedTool], now: Iterable[ApprovedTool]) -> dict[str, Change]:
    """How each tool is by its name, compared with what was approved: those that there are, and those that have gone."""
    known, told = ({tool.name: tool for tool in tools} for tools in (before, now))
    said: dict[str, Change] = {
        name: "new" if name not in known else "as approved" if known[name] == tool else "changed"
        for name, tool in told.items()
    }
    return {**said, **dict.fromkeys(known.keys() - told.keys(), "gone")}


def read_approved(path: Path) -> list[ApprovedTool]:
    """What was approved of a server; nothing without the file. Raises `ConfigError`."""
    try:
        return [ApprovedTool(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; remove it and approve the server's tools again") from None


def write_approved(path: Path, tools: Iterable[ApprovedTool]) -> None:
    """Keep what was approved. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, json.dumps([asdict(tool) for tool in tools], indent=1))
