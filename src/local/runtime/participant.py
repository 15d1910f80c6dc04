"""What a participant is: a name, a configuration, and handlers for the messages it understands."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from local.bus.bus import Bus
from local.config import Settings
from local.protocol.envelope import Envelope
from local.protocol.messages import Message

M = TypeVar("M", bound=Message)
Handler = Callable[[Any, M, Envelope], Awaitable[Message | None]]
_MARK = "__handles__"


class Kind(StrEnum):
    """What a participant is for."""

    AGENT = "agent"  # uses a model
    TOOL = "tool"  # answers tool.request.<name>
    OBSERVER = "observer"  # listens only
    DOOR = "door"  # lets people and programs in


@dataclass(frozen=True, slots=True)
class Resources:
    """What the composition root lends a participant: where to keep files, where the model is, what to listen on."""

    data_dir: Path
    model_url: str = ""
    model_backend: str = ""
    listener: socket.socket | None = None


@dataclass(frozen=True, slots=True)
class Handles:
    """One handler of a participant class: which messages it takes and how many of them at a time."""

    message: type[Message]
    method: str
    concurrency: int


def on(message: type[M], *, concurrency: int = 1) -> Callable[[Handler[M]], Handler[M]]:
    """Mark a method `async def (self, message, envelope) -> Message | None` as the handler of a message class.

    What it returns is published as the reply. With `concurrency` 1 messages are handled one after the other in order
    of arrival, else up to that many side by side. What it raises becomes an error message, never a crash.
    """

    def mark(method: Handler[M]) -> Handler[M]:
        setattr(method, _MARK, Handles(message, method.__name__, concurrency))
        return method

    return mark


class Settingless(Settings):
    """The configuration of a participant that has none."""


class Participant:
    """Base of everything that lives on the bus.

    Subclasses set `name`, `kind` and `Config`, take their config and services as arguments, and mark handlers with
    `on`. The runtime sets `bus` before anything else happens.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = Kind.OBSERVER
    Config: ClassVar[type[Settings]] = Settingless
    bus: Bus

    def __init__(self, config: Settings) -> None:
        self.config = config

    @classmethod
    def build(cls, config: Any, resources: Resources) -> Self:
        """Make one from its configuration; override to make the services that the constructor takes."""
        return cls(config)

    @classmethod
    def handlers(cls) -> Iterator[Handles]:
        """Every handler of the class, inherited ones included."""
        for name in dir(cls):
            handles = getattr(getattr(cls, name), _MARK, None)
            if isinstance(handles, Handles):
                yield handles

    def subject_of(self, message: type[Message]) -> str:
        """The subject to subscribe to for a message class; a family's whole family unless overridden."""
        return message.subject

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold what the participant needs while it serves; entered when the bus is ready, left after the last reply."""
        yield

    async def announce(self) -> None:
        """Say what others need to know; called when serving begins and after every reconnection."""

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """The reply that tells a requester of an exception in its handler; None publishes `bus.dead` instead."""
        return None

    def figures(self) -> dict[str, int]:
        """Counters of its own for the status beat."""
        return {}

    def details(self) -> dict[str, str]:
        """What it works with, for the status beat; `/health` shows it."""
        return {}
