"""What a participant is: a name, a configuration, and handlers for the messages it understands."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from local.bus.bus import Bus
from local.bus.durability import Consumer
from local.config import Settings
from local.config_models import Routing
from local.protocol.envelope import Envelope
from local.protocol.messages import Message

M = TypeVar("M", bound=Message)
Handler = Callable[[Any, M, Envelope], Awaitable[Message | None]]
_MARK = "__handles__"
WORKSPACE = "workspace"
HANDLER_PARAMETERS = 3  # self, message, envelope


Publications = tuple[type | str, ...]  # messages, whole subjects, and helpers that have such a list themselves


class Kind(StrEnum):
    """What a participant is for."""

    AGENT = "agent"  # uses a model
    TOOL = "tool"  # answers tool.request.<name>
    OBSERVER = "observer"  # listens only
    DOOR = "door"  # lets people and programs in
    SERVICE = "service"  # what the others rely on


@dataclass(frozen=True, slots=True)
class Resources:
    """What the composition root lends a participant: where to keep files, where the models are, what to listen on.

    `chat_model` is the one that answers the user, with a window of `chat_num_ctx` tokens, for whoever has none of its
    own: asked with another window, it would be loaded anew. `ollama_url` is where Ollama would be, whether it is used
    or not; `layers` are the folders of settings, the user's last; `workspace` is the folder that a user has named for
    the assistant to work in.
    """

    data_dir: Path
    routing: Routing | None = None
    model_backend: str = ""
    chat_model: str = ""
    chat_num_ctx: int = 32_000
    listener: socket.socket | None = None
    ollama_url: str = ""
    layers: tuple[Path, ...] = ()
    workspace: Path | None = None

    @property
    def workspace_folder(self) -> Path:
        """The folder that the assistant works in: the one that was named, or one in the data directory."""
        return self.workspace or self.data_dir / WORKSPACE


@dataclass(frozen=True, slots=True)
class Handles:
    """One handler of a participant class: which messages it takes and how many of them at a time; on `subject`, where
    that is not the one of the message for this class."""

    message: type[Message]
    method: str
    concurrency: int
    durable: str | None = None
    lane_width: int = 1
    subject: str = ""


def on(
    message: type[M], *, concurrency: int = 1, durable: str | None = None, lane_width: int = 1
) -> Callable[[Handler[M]], Handler[M]]:
    """Mark a method `async def (self, message, envelope) -> Message | None` as the handler of a message class.

    What it returns is published as the reply. With `concurrency` 1 messages are handled one after the other in order
    of arrival, else up to that many side by side. What it raises becomes an error message, never a crash.

    With `durable`, the name of a consumer of the journal, it misses nothing: it gets every message that was ever
    committed, from the journal alone, the messages of one session in order (up to `lane_width` of them side by side),
    and a message again for as long as it has not returned: after a crash, and when it raises. `StoreFailed` says that
    it could not do its work now; any other error is a failure, of which too many make the message a dead letter. So
    what it does must come to the same when it is done twice.
    """

    def mark(method: Handler[M]) -> Handler[M]:
        _require_handler(method, message)
        setattr(method, _MARK, Handles(message, method.__name__, concurrency, durable, lane_width))
        return method

    return mark


def _require_handler(method: Handler[M], message: type[M]) -> None:
    """Refuse, when its class is made, a handler that could not be called. Raises `TypeError`."""
    names = list(inspect.signature(method).parameters)
    if not inspect.iscoroutinefunction(method) or len(names) != HANDLER_PARAMETERS:
        wanted = f"async def {method.__name__}(self, message: {message.__name__}, envelope: Envelope)"
        raise TypeError(f"the handler {method.__qualname__} has to be written as: {wanted}")


class Settingless(Settings):
    """The configuration of a participant that has none."""


class Participant:
    """Base of everything that lives on the bus.

    Subclasses set `name`, `kind` and `Config`, take their config and services as arguments, and mark handlers with
    `on`. The runtime sets `bus` before anything else happens. One that is not `journaled` waits for no confirmation.

    It publishes what its class declares: what its handlers return by their annotations, and what stands in `publishes`,
    messages, whole subjects, and helpers with a `publishes` of their own. A class without that list declares every
    message, and every such helper, that its code names.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = Kind.OBSERVER
    settings: ClassVar[str] = ""  # the YAML file, where it is not called like the participant
    Config: ClassVar[type[Settings]] = Settingless
    journaled: ClassVar[bool] = True
    publishes: ClassVar[Publications | None] = None  # beside what handlers return; see `declaring`
    speaks_as: ClassVar[str | None] = None  # the respondent_id that all it says of a query names, if it answers queries
    linger_ms: ClassVar[int] = 0  # what the journal gives it may wait so long, to travel together: nobody waits for it
    bus: Bus

    def __init__(self, config: Settings) -> None:
        self.config = config
        self.attempts: dict[str, int] = {}  # of what the journal has given and is not done: how often, by envelope id
        self.consumers: list[Consumer] = []  # that give it what its durable handlers take

    @classmethod
    def build(cls, config: Any, resources: Resources) -> Self:
        """Make one from its configuration; override to make the services that the constructor takes."""
        return cls(config)

    def lent(self, resources: Resources) -> None:
        """What every participant of its kind needs of that, however it was built; called before it serves."""

    @classmethod
    def handlers(cls) -> Iterator[Handles]:
        """Every handler of the class, inherited ones included."""
        for name in dir(cls):
            handles = getattr(getattr(cls, name), _MARK, None)
            if isinstance(handles, Handles):
                yield handles

    @classmethod
    def subject_of(cls, message: type[Message]) -> str:
        """The subject on which it hears and says a message class; a family's whole family unless overridden."""
        return message.subject

    def may_say(self, envelope: Envelope, subject: str) -> bool:
        """Whether whoever has said this may publish on another subject, too; always where nobody declares anything."""
        guard = self.bus.guard
        return guard is None or guard.may_say(envelope.sender, envelope.instance, subject)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold what the participant needs while it serves; entered when the bus is ready, left after the last reply."""
        yield

    async def announce(self) -> None:
        """Say what others need to know; called when serving begins and after every reconnection."""

    async def caught_up(self, seconds: float) -> bool:
        """Whether the durable handlers have ended with all that had arrived for them when this was called, within so
        many seconds. For other handlers: a durable one would wait for itself."""
        return all(await asyncio.gather(*(consumer.caught_up(seconds) for consumer in self.consumers)))

    def hand_back(self) -> None:
        """Asked to stop: let those durable handlers raise `HandedBack` that would take long."""

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """The reply that tells a requester of an exception in its handler; None publishes `bus.dead` instead. What is
        no `BadRequest` is an error in the log, too."""
        return None

    def figures(self) -> dict[str, int]:
        """Counters of its own for the status beat."""
        return {}

    def details(self) -> dict[str, str]:
        """What the participant works with, for the status beat; `/health` shows it."""
        return {}
