"""An entry of the owner's lists: a tool by its name, or of one that runs commands an exact vector of arguments."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

COMMAND = "command"  # the argument of tools that run commands: a line, or a program and its arguments


class ListedCall(NamedTuple):
    """Without `argv` it is every call of the tool."""

    tool: str
    argv: tuple[str, ...] | None = None

    @classmethod
    def of(cls, entry: object) -> ListedCall:
        """A call listed as `name` or `{name: [argument, …]}`. Raises `ValueError` for anything else."""
        if isinstance(entry, str) and entry:
            return cls(entry)
        if isinstance(entry, Mapping) and len(entry) == 1:
            [(tool, argv)] = entry.items()
            if isinstance(tool, str) and tool and (vector := _vector(argv)):
                return cls(tool, vector)
        raise ValueError(f"{entry!r}: expected a tool, or one with its arguments, as in shell_exec: [git, status]")

    def is_call(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether that call is exactly this: with this vector, and nothing said beside it."""
        if tool != self.tool:
            return False
        return self.argv is None or (args.keys() == {COMMAND} and _vector(args[COMMAND]) == self.argv)

    def may_be_call(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether that call could come to this, however it is written."""
        if tool != self.tool or self.argv is None:
            return tool == self.tool
        command = args.get(COMMAND)
        return self.argv == _vector(_split(command) if isinstance(command, str) else command)


def _vector(value: object) -> tuple[str, ...] | None:
    is_vector = isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value)
    return tuple(value) if is_vector else None  # type: ignore[arg-type]  # it is one


def _split(command: str) -> list[str] | None:
    try:
        return shlex.split(command)
    except ValueError:
        return None
