"""The base class of participants: a name, a configuration, and handlers for messages."""

from __future__ import annotations

import asyncio
import inspect
import math
import socket
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args, get_type_hints

from local.bus.bus import Bus, Consumer, Delivered
from local.bus.envelope import Envelope
from local.bus.message import Message, covers
from local.bus.messages import BusDead, BusGap, BusProbe, ParticipantStatus
from local.bus.security import Declaration
from local.core.config import Settings
from local.core.errors import BusClosed
from local.core.routing import Routing
from local.core.workspace import WORKSPACE
from local.journal.messages import ConsumerMessage

M = TypeVar("M", bound=Message)
Handler = Callable[[Any, M, Envelope], Awaitable[Message | None]]
_MARK = "__handles__"
HANDLER_PARAMETERS = 3  # self, message, envelope


Publications = tuple[type | str, ...]  # messages, whole subjects, and helpers with such a list of their own


class Kind(StrEnum):
    """The role of a participant."""

    AGENT = "agent"  # uses a model
    TOOL = "tool"  # answers tool.request.<name>
    OBSERVER = "observer"  # listens only
    FRONTEND = "frontend"  # for people and other programs
    SERVICE = "service"  # infrastructure for the other participants
    DOOR = FRONTEND  # the former name


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a participant besides its settings: folders for files, model servers, sockets.

    `chat_model` is the model that answers the user, with a window of `chat_num_ctx` tokens. Participants without a
    model of their own use it with that window, because another window would make the model server load it again.
    `ollama_url` is the address of Ollama, whether it is used or not. `layers` are the settings folders, the user's
    last. `workspace` is the folder that the user has chosen for the assistant to work in. `clock_ahead` is how many
    seconds the clock of the bus's machine is ahead of this one's. `is_replicated` says that another machine can
    continue this system.
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
    clock_ahead: float = 0.0
    is_replicated: bool = False

    @property
    def workspace_folder(self) -> Path:
        """The folder that the assistant works in: the one that was named, or one in the data directory."""
        return self.workspace or self.data_dir / WORKSPACE


@dataclass(frozen=True, slots=True)
class Handles:
    """One handler of a participant class: its messages, how many it takes at a time, and the `subject`, where that
    differs from the message's own for this class.
    """

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

    Its return value is published as the reply. With `concurrency` 1 messages are handled one after the other in order
    of arrival, else up to that many side by side. An exception becomes an error message, never a crash.

    With `durable`, the name of a consumer of the journal, it misses nothing: it gets every message that was ever
    committed, from the journal alone, the messages of one session in order (up to `lane_width` of them side by side),
    and a message again until it has returned: after a crash, and after an exception. `StoreFailed` means that the work
    cannot be done now; any other error is a failure, of which too many make the message a dead letter. So handling a
    message twice must have the same effect as once.
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
        raise TypeError(f"the handler {method.__qualname__} must have the signature: {wanted}")


class Settingless(Settings):
    """The configuration of a participant without settings."""


class Participant:
    """Base class of all participants of the bus.

    Subclasses set `name`, `kind` and `Config`, take their config and services as arguments, and mark handlers with
    `on`. The runtime sets `bus` first. A participant that is not `journaled` waits for no confirmation.

    It may publish the messages that its class declares: the return annotations of its handlers, and the entries of
    `publishes`: messages, whole subjects, and helpers with a `publishes` list. A class without that list declares every
    message, and every such helper, that its code names.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = Kind.OBSERVER
    settings: ClassVar[str] = ""  # the YAML file, where it is not called like the participant
    Config: ClassVar[type[Settings]] = Settingless
    journaled: ClassVar[bool] = True
    publishes: ClassVar[Publications | None] = None  # besides the replies of handlers; see `declaring`
    speaks_as: ClassVar[str | None] = None  # the respondent_id in its messages, if it answers queries
    linger_ms: ClassVar[int] = 0  # how long deliveries may be held to be sent together, if no user waits
    bus: Bus

    def __init__(self, config: Settings) -> None:
        self.config = config
        self.attempts: dict[str, int] = {}  # of unfinished deliveries of the journal, by envelope id
        self.consumers: list[Consumer] = []  # that deliver to its durable handlers

    @classmethod
    def build(cls, config: Any, resources: Resources) -> Self:
        """Make one from its configuration; override to make the services that the constructor takes."""
        return cls(config)

    def lent(self, resources: Resources) -> None:
        """Set up the resources that every participant of its kind needs; called before it serves."""

    @classmethod
    def handlers(cls) -> Iterator[Handles]:
        """Every handler of the class, inherited ones included."""
        for name in dir(cls):
            handles = getattr(getattr(cls, name), _MARK, None)
            if isinstance(handles, Handles):
                yield handles

    @classmethod
    def subject_of(cls, message: type[Message]) -> str:
        """Return the subject on which it receives and publishes a message class; by default the whole family for a
        family.
        """
        return message.subject

    def may_publish(self, envelope: Envelope, subject: str) -> bool:
        """Whether the sender of this message may also publish on another subject; always true on a bus without
        declarations.
        """
        guard = self.bus.guard
        return guard is None or guard.may_publish(envelope.sender, envelope.instance, subject)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the participant's resources while it serves; entered when the bus is ready, left after the
        last reply.
        """
        yield

    async def announce(self) -> None:
        """Publish the initial messages; called when serving begins and after every reconnection."""

    async def caught_up(self, seconds: float) -> bool:
        """Whether the durable handlers have ended with all that had arrived for them when this was called, within so
        many seconds. For other handlers: a durable one would wait for itself."""
        return all(await asyncio.gather(*(consumer.caught_up(seconds) for consumer in self.consumers)))

    def hand_back(self) -> None:
        """Called when the participant is asked to stop: long durable handlers should raise `HandedBack`."""

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Return the reply that reports an exception in a handler to the requester; None publishes `bus.dead` instead.
        Exceptions other than `BadRequest` are also logged as errors.
        """
        return None

    def metrics(self) -> dict[str, int]:
        """Return the participant's own counters for the status beat."""
        return {}

    def details(self) -> dict[str, str]:
        """Return the participant's details for the status beat; `/health` shows them."""
        return {}


# The publications of a participant's class: from its handlers, its own list, or else its code.

EVERYBODY = (ParticipantStatus, BusGap, BusDead, BusProbe)


def declaration_of(kind: type[Participant]) -> Declaration:
    """Return what participants of a class may publish: the messages common to all, the return types of its handlers,
    and for each base class its `publishes` or, without that list, the messages that its code names.
    """
    consumers = frozenset(handles.durable for handles in kind.handlers() if handles.durable is not None)
    said: set[Any] = {*EVERYBODY, *(get_args(ConsumerMessage) if consumers else ()), *_returned(kind)}
    for base in kind.__mro__[: kind.__mro__.index(Participant)]:
        written = vars(base).get("publishes")
        said.update(_named(base) if written is None else written)
    return Declaration(frozenset(_subjects(kind, said)), consumers, kind.speaks_as)


def what_everybody_says() -> Declaration:
    """Return the messages that every bus publishes: its status and its losses."""
    return Declaration(frozenset(message.subject for message in EVERYBODY))


def _subjects(kind: type[Participant], said: Iterable[Any]) -> Iterator[str]:
    for each in said:
        if isinstance(each, str):
            yield each
        elif issubclass(each, Message):
            yield kind.subject_of(each)
        else:
            yield from _subjects(kind, each.publishes)


def _returned(kind: type[Participant]) -> Iterator[type[Message]]:
    """The messages that handlers return, by their annotations."""
    for handles in kind.handlers():
        try:
            returned = get_type_hints(getattr(kind, handles.method)).get("return")
        except (NameError, TypeError):  # an annotation that only type checkers can read: the code is looked at instead
            continue
        yield from (each for each in (returned, *get_args(returned)) if _is_message(each))


def _named(base: type) -> set[type]:
    """The messages, and helpers that publish some, which are named in the functions of a class, and in those functions
    and classes of its module that these name."""
    found: set[type] = set()
    _look_into(base, base.__module__, found, set())
    return found


def _look_into(thing: Any, module: str, found: set[type], seen: set[Any]) -> None:
    if thing in seen or getattr(thing, "__module__", None) != module:
        return
    seen.add(thing)
    for function in vars(thing).values() if isinstance(thing, type) else (thing,):
        function = unwrap(getattr(function, "fget", None) or getattr(function, "__func__", function))
        if not isinstance(function, FunctionType):
            continue
        for named in _globals_in(function.__code__, function.__globals__):
            if _is_message(named) or (isinstance(named, type) and getattr(named, "publishes", None)):
                found.add(named)
            elif isinstance(named, type | FunctionType):
                _look_into(named, module, found, seen)


def _globals_in(code: CodeType, scope: Mapping[str, Any]) -> Iterator[Any]:
    named = [scope[name] for name in code.co_names if name in scope]
    yield from named
    for module in named:
        if isinstance(module, ModuleType):
            yield from (getattr(module, name) for name in code.co_names if hasattr(module, name))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_in(constant, scope)


def _is_message(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Message) and hasattr(thing, "subject")


# Answers to recent requests, so that a repeated request gets the same answer and is not done twice.

MAX_REPLIES = 512


class RecentReplies:
    """The ids of recent requests, each with its answer or marked as in flight. Beyond 512 the oldest answered one is
    removed.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[str, Message | None] = OrderedDict()

    def begin(self, request_id: str) -> bool:
        """Begin a request; False if it is known already."""
        if request_id in self._replies:
            return False
        self._replies[request_id] = None
        if len(self._replies) > MAX_REPLIES:
            answered = next((known for known, reply in self._replies.items() if reply is not None), None)
            if answered is not None:
                del self._replies[answered]
        return True

    def settle(self, request_id: str, reply: Message) -> None:
        """Note the answer."""
        self._replies[request_id] = reply

    def forget(self, request_id: str) -> None:
        """Forget a request, so that it is handled again when it is repeated."""
        self._replies.pop(request_id, None)

    def answer(self, request_id: str) -> Message | None:
        """The answer to a known request; None while it is in flight."""
        return self._replies.get(request_id)


# Where a handler's messages come from: the live bus, or the journal.

Method = Callable[[Message, Envelope], Awaitable[Message | None]]
MAX_ENVELOPES = 100_000
MAX_BYTES = 64 * 1024 * 1024


class Inbox:
    """A bounded queue of envelopes for one handler: by number, and by the bytes of their payloads. Adding never blocks.

    An envelope that has waited for longer than its `ttl_ms` is dropped and counted in `expired`. `clock` gives
    monotonic seconds.
    """

    def __init__(
        self,
        *,
        max_envelopes: int = MAX_ENVELOPES,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.expired = 0
        self._max_envelopes, self._max_bytes, self._clock = max_envelopes, max_bytes, clock
        self._items: deque[tuple[Envelope, float]] = deque()  # each with the time until which it is of use
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, envelope: Envelope) -> bool:
        """Append; returns False if there is no room."""
        size = len(envelope.payload)
        if len(self._items) >= self._max_envelopes or self._bytes + size > self._max_bytes:
            return False
        until = math.inf if envelope.ttl_ms is None else self._clock() + envelope.ttl_ms / 1000
        self._items.append((envelope, until))
        self._bytes += size
        self._wake()
        return True

    async def take(self) -> Envelope:
        """The oldest envelope still of use, as soon as there is one. Raises `BusClosed` when closed and empty."""
        while True:
            while not self._items:
                if self._closed:
                    raise BusClosed("the inbox was closed")
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            envelope, until = self._items.popleft()
            self._bytes -= len(envelope.payload)
            if until == math.inf or self._clock() <= until:
                return envelope
            self.expired += 1

    def discard(self) -> None:
        """Discard the waiting messages, because they will be delivered by another way."""
        self._items.clear()
        self._bytes = 0

    def close(self) -> None:
        """Accept no more messages; waiting ones can still be taken."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            try:
                yield await self.take()
            except BusClosed:
                return


class Subscription(Protocol):
    """A handler and the envelopes that have arrived for it."""

    handles: Handles
    method: Method
    inbox: Inbox

    def done(self, envelope: Envelope) -> None:
        """Record that a handler has finished with an envelope."""

    def not_done(self, envelope: Envelope) -> None:
        """The handler could not do its work on an envelope now."""

    def failed(self, envelope: Envelope, reason: str) -> None:
        """The handler raised on an envelope."""

    def close(self) -> None:
        """Accept no more messages; those that have arrived can still be handled."""


class LiveSubscription:
    """A subscription on the live bus: lost messages are not sent again and nothing is acknowledged."""

    def __init__(self, bus: Bus, participant: Participant, handles: Handles) -> None:
        self.handles, self.method, self.inbox = handles, getattr(participant, handles.method), Inbox()
        subject = handles.subject or participant.subject_of(handles.message)
        self._end = bus.subscribe(subject, self.inbox.offer, repeats=handles.message.is_request)

    def done(self, envelope: Envelope) -> None:
        """Do nothing: live messages are not acknowledged."""

    def not_done(self, envelope: Envelope) -> None:
        """Do nothing: live messages are not acknowledged."""

    def failed(self, envelope: Envelope, reason: str) -> None:
        """Do nothing: live messages are not acknowledged."""

    def close(self) -> None:
        """See `Subscription`."""
        self._end()
        self.inbox.close()


class DurableSubscription:
    """A subscription that gets the messages of one handler from a durable consumer of the journal."""

    def __init__(self, participant: Participant, handles: Handles) -> None:
        self.handles, self.method, self.inbox = handles, getattr(participant, handles.method), Inbox()
        self.subject = handles.subject or participant.subject_of(handles.message)
        self._attempts = participant.attempts
        self.consumer: Consumer
        self._numbers: dict[str, int] = {}  # by envelope id
        self._closed = False

    def take(self, delivered: Delivered) -> None:
        """Add a message from the journal; recorded messages do not expire."""
        envelope = delivered.envelope._replace(ttl_ms=None)
        self._numbers[envelope.id], self._attempts[envelope.id] = delivered.number, delivered.attempt
        if self._closed or not self.inbox.offer(envelope):
            self.not_done(envelope)

    def done(self, envelope: Envelope) -> None:
        """See `Subscription`."""
        self._attempts.pop(envelope.id, None)
        self.consumer.acknowledge(self._numbers.pop(envelope.id))

    def not_done(self, envelope: Envelope) -> None:
        """See `Subscription`."""
        self._attempts.pop(envelope.id, None)
        self.consumer.release(self._numbers.pop(envelope.id))

    def failed(self, envelope: Envelope, reason: str) -> None:
        """See `Subscription`."""
        self.consumer.fail(self._numbers.pop(envelope.id), reason)

    def close(self) -> None:
        """See `Subscription`. Messages that have not begun are handed back with the consumer."""
        self._closed = True
        self.inbox.discard()
        self.inbox.close()


class DurableSubscriptions:
    """All handlers of one durable consumer, which share one name and one order in the journal.

    Raises `NoJournal`.
    """

    def __init__(
        self, bus: Bus, participant: Participant, name: str, handlers: Iterable[Handles], replaced: Callable[[], object]
    ) -> None:
        self.subscriptions = [DurableSubscription(participant, handles) for handles in handlers]
        self.name, self.subjects = name, sorted(subscription.subject for subscription in self.subscriptions)
        self.consumer = bus.consume(
            name,
            self.subjects,
            self._take,
            replaced,
            max_in_flight=max(2, *(subscription.handles.concurrency for subscription in self.subscriptions)),
            lane_width=max(subscription.handles.lane_width for subscription in self.subscriptions),
            linger_ms=participant.linger_ms,
        )
        participant.consumers.append(self.consumer)
        for subscription in self.subscriptions:
            subscription.consumer = self.consumer

    def _take(self, delivered: Delivered) -> None:
        subject = delivered.envelope.subject
        for subscription in self.subscriptions:
            if covers(subscription.subject, subject):
                subscription.take(delivered)
                return
        self.consumer.acknowledge(delivered.number)  # of a subject that an earlier version wanted
