"""The table of contents of LoCAL2: the capabilities, and their contributions to the system.

A capability is one folder below `local`. Its `__init__.py` holds a `CAPABILITY`, which names modules instead of
importing them, so that reading the whole table costs nothing. Deleting its folder and its line removes a capability
that no other folder imports. That does not hold yet for memory, critic, hooks, skills, cron, swarm, reflection and mcp.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

NAMES = (
    "bus",
    "journal",
    "models",
    "generator",
    "permissions",
    "memory",
    "critic",
    "reward",
    "web",
    "files",
    "attachments",
    "shell",
    "hooks",
    "skills",
    "cron",
    "swarm",
    "reflection",
    "mcp",
    "instructions",
    "users",
    "desktop",
    "cli",
    "stories",
    "run",
)


class Section(StrEnum):
    """A heading of `local2 --help`, in the order in which they are shown."""

    ASK = "Ask and chat"
    WATCH = "Watch"
    MEMORY = "Memory"
    TOOLS = "Tools and permissions"
    AGENTS = "Agents and schedules"
    MODELS = "Models"
    SYSTEM = "System"


class OnPage(NamedTuple):
    """The place on the page where a person does what a command does: the `address` of a screen, without "#/", and the
    `control` there, with the words that the page shows between asterisks."""

    address: str
    control: str


class OnlyInTerminal(NamedTuple):
    """The reason why the page does not do what a command does."""

    reason: str


Place = OnPage | OnlyInTerminal


@dataclass(frozen=True, slots=True)
class Command:
    """One word after `local2`. `target` is the function or the typer app, "module:attribute"; `summary` is its line in
    `local2 --help`, which therefore imports no command. `on_page` says where the page does the same: of a group by the
    next word, "pin unpin" for two of them. docs/reference/on-the-page.md is made of it."""

    target: str
    section: Section
    summary: str
    on_page: Place | Mapping[str, Place] = field(default_factory=dict)

    def places(self) -> dict[str, Place]:
        """Where the page does the same, by the next word, which is empty for the command itself."""
        if not isinstance(self.on_page, Mapping):
            return {"": self.on_page}
        return {word: place for words, place in self.on_page.items() for word in (words.split() or [""])}


@dataclass(frozen=True, slots=True)
class Capability:
    """The entry of one folder in the table of contents. `participants` are "module:Class" by the name in `system.yaml`,
    `messages` modules with message classes, `routes` functions "module:function" that add HTTP routes to a router,
    `requests` the messages "module:Class" that these routes send, `commands` the words after `local2`, and
    `aliases` other words for them: "pull" for "model pull". `extensions` are "module:Class" by the participant of
    another capability that they extend, which works without them, too."""

    participants: Mapping[str, str] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)


@cache
def capabilities() -> Mapping[str, Capability]:
    """Every capability by the name of its folder, in the order of `NAMES`."""
    return {name: importlib.import_module(f"local.{name}").CAPABILITY for name in NAMES}


def participants() -> dict[str, str]:
    """Our own participants as "module:Class" by the name that `system.yaml` uses."""
    return {name: target for each in capabilities().values() for name, target in each.participants.items()}


def extension(participant: str) -> Any:
    """The class by which a capability extends a participant of another one; None if none does."""
    for each in capabilities().values():
        if participant in each.extensions:
            module, _, name = each.extensions[participant].partition(":")
            return getattr(importlib.import_module(module), name)
    return None
