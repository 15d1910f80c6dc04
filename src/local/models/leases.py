"""The side of the arbiter's clients: each process announces users' turns, and takes leases for background calls."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

from local.bus.bus import Bus
from local.bus.envelope import Envelope, new_id
from local.bus.messages import ModelUsed
from local.bus.vocabulary import BACKGROUND, SCHEDULE
from local.core.config_file import is_cloud
from local.core.errors import ModelError
from local.core.routing import CACHE, CACHE_MIB, CLOUD_MODELS, Provider, Routing, option
from local.models.chat import Delta, Usage, whole_reply
from local.models.groups import ServerChoice
from local.models.lease_messages import IDLE, Lease, LeaseClaim, LeaseKind, LeaseState
from local.swarm.messages import AgentTask

T = TypeVar("T")
log = logging.getLogger(__name__)

BEAT_SECONDS = 0.5
ALONE_SECONDS = 3.0  # without a message from an arbiter, before a background call proceeds by itself
LINGER_SECONDS = 0.1  # a place is kept so long for the next turn or call
TENURE_SECONDS = 1.0  # a lease that others wait for is not handed on after that
GRACE_SECONDS = 0.03  # for users' turns to be reported before the first lease is granted
AGENTS = "agents"
RESTORE = "restore"
# Calls that users have requested: they wait for turns, but not until a conversation is over, and are served in order.
ORDERED = frozenset({SCHEDULE, AGENTS})

Ask = Callable[[int], AsyncGenerator[Delta, None]]
"""A call of a model that says at most so many tokens."""


@dataclass(slots=True)
class _Lease:
    id: str
    purpose: str
    server: str
    model: str
    number: int  # the later the higher
    asked_at: float
    granted: asyncio.Event = field(default_factory=asyncio.Event)
    granted_at: float = 0.0
    call: asyncio.Task[Any] | None = None
    revoked: bool = False
    timer: asyncio.TimerHandle | None = None  # the end of its grace before a call, or of its lingering after one


class Leases:
    """The claims of one process on model servers. `locate(model)` returns the server, and the model's name there.

    A turn is not announced while no lease is urgent, unless it lasts, or its model is on several servers: then it is at
    once, since all processes count the turns of each. All other claims are published at each change and twice a second,
    so that a lost message does no harm and a process that has died loses its leases. Until `are_open` is entered, every
    call proceeds at once.
    """

    publishes = (LeaseClaim, ModelUsed)

    def __init__(
        self,
        locate: Callable[[str], tuple[str, str]] = lambda model: ("default", model),
        servers: ServerChoice | None = None,
    ) -> None:
        self._locate = lru_cache(256)(locate)
        self.servers = servers or ServerChoice()
        self._bus: Bus | None = None
        self._numbers = count()
        self._running_turns: Counter[tuple[str, str]] = Counter()  # by server and model
        self._turns_ended: dict[tuple[str, str], float] = {}
        self._unsaid_ends: set[str] = set()  # servers
        self._turns: Counter[str] = Counter()  # by server, as all that follow
        self._said_turns: Counter[str] = Counter()
        self._lines: dict[str, LeaseState] = {}
        self._heard_at: dict[str, float] = {}
        self._unsaid: set[str] = set()
        self._leases: dict[str, _Lease] = {}  # by id
        self._beat: asyncio.TimerHandle | None = None
        # The last call of a user's turn: the model's name there, and for people.
        self._asked: dict[str, tuple[str, str, Ask]] = {}
        self._restoring: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def are_open(self, bus: Bus) -> AsyncIterator[None]:
        """Talk to the arbiter while the block lasts; leave it once nothing waits any more. Raises `BusNotReady`."""
        end = bus.subscribe(LeaseState.subject, self._receive)
        await bus.ready()
        self._bus = bus
        try:
            yield
        finally:
            self._bus = None
            for timer in (self._beat, *(lease.timer for lease in self._leases.values())):
                if timer is not None:
                    timer.cancel()
            self._stop_restoring()
            end()

    @contextmanager
    def users_turn(self, model: str) -> Iterator[None]:
        """The context of a user's turn: it needs no lease, and background calls make room.

        The place is kept a moment longer: if the next turn follows at once, nothing has to be published.
        """
        where = server, _ = self._locate(model)
        self._stop_restoring()
        self._turns[server] += 1
        self._running_turns[where] += 1
        if server in self.servers.providers:
            self._claim_soon(server)
        elif self._is_urgent(server):
            self._claim_turns(server)
        self._keep_beating()
        try:
            yield
        finally:
            self._turns[server] -= 1
            self._running_turns[where] -= 1
            self._turns_ended[where] = asyncio.get_running_loop().time()
            self._unsaid_ends.add(server)
            if self._said_turns[server]:
                asyncio.get_running_loop().call_later(LINGER_SECONDS, self._claim_turns, server)
            if self._beat is not None and not self._leases and not +self._turns:
                self._beat.cancel()
                self._beat = None

    def at(self, model: str, conversation: str, *, turn: bool = True) -> str:
        """The model's name at the server that a conversation is asked at next; the same where it has only one. Without
        a `turn` it is a background call, which waits for the conversation's own server."""
        if not self.servers.providers:
            return model
        name = "/".join(self._locate(model))
        peer = self.servers.choose(name, conversation, self.turns_at) if turn else self.servers.home(name, conversation)
        return model if peer == name else peer

    def turns_at(self, server: str) -> int:
        """Return the users' turns at a server, of this process and, as the arbiter has counted them, of all others."""
        line, own = self._lines.get(server), self._turns[server]
        if line is None or asyncio.get_running_loop().time() - self._heard_at[server] > ALONE_SECONDS:
            return own
        return own + max(0, line.turns - self._said_turns[server])

    async def in_background(self, model: str, purpose: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `work()`, run as soon as the model's server has a place for it.

        The call is cancelled when a user's turn needs the place, and repeated as soon as there is a place again: `work`
        has to allow that. Without a message from an arbiter for three seconds, it proceeds without a lease. `purpose`
        is a word for people who watch the queue; calls of one purpose hand their lease on to each other.
        """
        if self._bus is None:
            return await work()
        server, name = self._locate(model)
        lease = self._lingering(server, purpose) or self._new(server, name, purpose)
        try:
            while True:
                while not lease.granted.is_set():  # it may be revoked before this task wakes up
                    await lease.granted.wait()
                lease.call = call = asyncio.create_task(work(), name=lease.id)
                try:
                    return await call
                except asyncio.CancelledError:
                    if not lease.revoked or _is_cancelled():
                        raise
                self._wait_again(lease)
        finally:
            self._end(lease)

    def asked(self, model: str, ask: Ask) -> None:
        """Note the last call of a user's turn. Once background calls have evicted its prompt, or its model, from the
        server, it is repeated in the background for one token, so that the next question finds both there.
        """
        server, name = self._locate(model)
        self._asked[server] = name, model, ask

    def forget(self) -> None:
        """Forget the calls of users' turns: something that they contain is deleted."""
        self._asked.clear()

    def report_use(self, purpose: str, model: str, used: Usage, begun: float) -> None:
        """Report the usage of a call for that purpose; `begun` is its start, of `time.monotonic`."""
        if self._bus is not None:
            seconds = round(time.monotonic() - begun, 3)
            tokens = {"prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens}
            where = {"server": used.server} if used.server else {}
            self._bus.post(ModelUsed(purpose=purpose, model=model, seconds=seconds, **tokens, **where))

    def _new(self, server: str, model: str, purpose: str) -> _Lease:
        now = asyncio.get_running_loop().time()
        lease = _Lease(f"{purpose}-{new_id()[:12]}", purpose, server, model, next(self._numbers), now)
        self._leases[lease.id] = lease
        self._claim_soon(server)
        return lease

    def _lingering(self, server: str, purpose: str) -> _Lease | None:
        """Return a lease whose call has ended, and whose place has not been needed since."""
        for lease in self._of(server, purpose):
            if lease.granted.is_set() and lease.timer is not None:
                _stop_timer(lease)
                return lease
        return None

    def _end(self, lease: _Lease) -> None:
        """End a call: the place goes to another call of the purpose, at once or within a moment, or is released."""
        lease.call = None
        is_to_end = not lease.granted.is_set() or lease.revoked or self._is_due_to_others(lease)
        if is_to_end or self._bus is None:
            self._drop(lease)
            return
        heir = self._next(lease)
        if heir is None:
            lease.timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._drop, lease)
            return
        del self._leases[heir.id]
        heir.id = lease.id
        self._leases[heir.id] = heir
        self._grant(heir, lease.granted_at)
        line = self._lines.get(lease.server)
        if line is not None and line.slots > 1:  # otherwise the ended id can wait for the next claim
            self._claim_soon(lease.server)

    def _of(self, server: str, purpose: str) -> Iterator[_Lease]:
        return (lease for lease in self._leases.values() if (lease.server, lease.purpose) == (server, purpose))

    def _next(self, lease: _Lease) -> _Lease | None:
        """Which of the calls that wait for the purpose of a lease goes next, if any."""
        waiting = [other for other in self._of(lease.server, lease.purpose) if not other.granted.is_set()]
        choose = min if lease.purpose in ORDERED else max
        return choose(waiting, key=lambda other: other.number, default=None)

    def _drop(self, lease: _Lease) -> None:
        _stop_timer(lease)
        del self._leases[lease.id]
        self._claim_soon(lease.server)

    def _is_due_to_others(self, lease: _Lease) -> bool:
        line = self._lines.get(lease.server)
        do_others_wait = line is not None and any(waiting not in self._leases for waiting in line.waiting)
        return do_others_wait and asyncio.get_running_loop().time() - lease.granted_at > TENURE_SECONDS

    def _is_urgent(self, server: str) -> bool:
        line = self._lines.get(server)
        return line is not None and line.is_urgent

    def _wait_again(self, lease: _Lease) -> None:
        lease.call, lease.revoked = None, False
        lease.granted.clear()
        self._claim_soon(lease.server)

    def _receive(self, envelope: Envelope) -> None:
        state = LeaseState.decode(envelope.payload)
        server, was_urgent = state.server, self._is_urgent(state.server)
        self._lines[server] = state
        loop = asyncio.get_running_loop()
        self._heard_at[server] = loop.time()
        if state.is_used:
            self._claim_turns(server)
        for lease in [lease for lease in self._leases.values() if lease.server == server]:
            if lease.id in state.revoked:
                self._revoke(lease)
            elif lease.id not in state.granted or lease.granted.is_set():
                continue
            elif was_urgent:
                self._grant_next(lease, loop.time())
            elif lease.timer is None:
                lease.timer = loop.call_later(GRACE_SECONDS, self._grant_next, lease, loop.time())
        name, model, ask = self._asked.get(server, ("", "", None))
        is_restoring = self._restoring is not None and not self._restoring.done()
        if ask is not None and name == state.restore and not is_restoring and not self._turns[server]:
            self._restoring = asyncio.create_task(self._restore(model, ask), name=f"restore {model}")

    async def _restore(self, model: str, ask: Ask) -> None:
        begun = time.monotonic()
        try:
            _, usage = await self.in_background(model, RESTORE, lambda: whole_reply(ask(1)))
        except ModelError as error:
            log.info("the last conversation with %s is not loaded again: %s", model, error)
        else:
            self.report_use(RESTORE, model, usage, begun)

    def _stop_restoring(self) -> None:
        if self._restoring is not None:
            self._restoring.cancel()

    def _grant_next(self, lease: _Lease, now: float) -> None:
        """The arbiter has granted this lease: the call that goes next takes over its id, and the other one waits."""
        following = self._next(lease)
        if following is not None and following is not lease:
            if following.timer is None:  # else both were granted, and it grants the other one
                _stop_timer(lease)
            lease.id, following.id = following.id, lease.id
            self._leases[lease.id], self._leases[following.id] = lease, following
            lease = following
        self._grant(lease, now)

    def _grant(self, lease: _Lease, now: float) -> None:
        _stop_timer(lease)
        lease.granted_at = now
        lease.granted.set()

    def _revoke(self, lease: _Lease) -> None:
        if lease.call is not None:
            if not lease.revoked:  # once: it may take a while to clean up
                lease.revoked = True
                lease.call.cancel()
        elif lease.timer is not None and lease.granted.is_set():  # it lingers
            self._drop(lease)
        else:
            _stop_timer(lease)
            self._wait_again(lease)

    def _keep_beating(self) -> None:
        if self._beat is None and self._bus is not None and (self._leases or +self._turns):
            self._beat = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._on_beat)

    def _on_beat(self) -> None:
        self._beat = None
        now = asyncio.get_running_loop().time()
        for lease in self._leases.values():
            is_waiting = not lease.granted.is_set()
            if is_waiting and now - max(lease.asked_at, self._heard_at.get(lease.server, 0.0)) > ALONE_SECONDS:
                self._grant(lease, now)
        for server in {lease.server for lease in self._leases.values()} | set(+self._turns):
            self._claim_soon(server)
        self._keep_beating()

    def _claim_turns(self, server: str) -> None:
        if self._turns[server] != self._said_turns[server] or server in self._unsaid_ends:
            self._claim(server)

    def _claim_soon(self, server: str) -> None:
        """Claim in the event loop's next round, once for all that changes in this one."""
        self._keep_beating()
        if not self._unsaid:
            asyncio.get_running_loop().call_soon(self._claim_unsaid)
        self._unsaid.add(server)

    def _claim_unsaid(self) -> None:
        unsaid, self._unsaid = self._unsaid, set()
        for server in unsaid:
            self._claim(server)

    def _claim(self, server: str) -> None:
        if self._bus is None:
            return
        self._said_turns[server] = self._turns[server]
        self._unsaid_ends.discard(server)
        leases = tuple(
            Lease(
                id=lease.id,
                running=lease.granted.is_set(),
                model=lease.model,
                kind=_kind(lease.purpose),
            )
            for lease in self._leases.values()
            if lease.server == server
        )
        claim = LeaseClaim(server=server, turns=self._turns[server], leases=leases, last_turns=self._last_turns(server))
        self._bus.post(claim)

    def _last_turns(self, server: str) -> dict[str, float]:
        now = asyncio.get_running_loop().time()
        ended = {model: round(now - at, 3) for (on, model), at in self._turns_ended.items() if on == server}
        running = {model: 0.0 for (on, model), turns in self._running_turns.items() if on == server and turns}
        return ended | running


@dataclass(frozen=True, slots=True)
class Priority:
    """The place of one turn in the queue of the server at which `model` is asked. A user's turn needs no lease, and
    others make room for it. Each call of a turn with a `purpose`, for which no user waits, takes a lease and releases
    it when a user's turn needs the model.
    """

    leases: Leases
    model: str
    purpose: str = ""
    conversation: str = ""

    def turn(self) -> AbstractContextManager[None]:
        """Hold this for as long as the turn runs: a user's is announced."""
        return nullcontext() if self.purpose else self.leases.users_turn(self.model)

    def asked(self, ask: Ask) -> None:
        """Note the call that a turn has made last; see `Leases.asked`."""
        if not self.purpose:
            self.leases.asked(self.model, ask)

    def answered(self, usage: Usage) -> None:
        """A call of the turn was answered: its server has read the conversation."""
        self.leases.servers.answered(self.conversation, usage)

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `work()`, one call of the model. With a purpose it may be interrupted and
        called again.
        """
        return await (self.leases.in_background(self.model, self.purpose, work) if self.purpose else work())


def purpose_of(origin: str, task: AgentTask | None) -> str:
    """Return the purpose of a turn for a query of that origin, or for that task of an agent; none if a person waits."""
    if origin in BACKGROUND:
        return origin
    return AGENTS if task is not None and task.in_background else ""


def _kind(purpose: str) -> LeaseKind:
    if purpose in ORDERED:
        return "ordered"
    return "restore" if purpose == RESTORE else "idle" if purpose in IDLE else "patient"


def _stop_timer(lease: _Lease) -> None:
    if lease.timer is not None:
        lease.timer.cancel()
        lease.timer = None


def _is_cancelled() -> bool:
    """Whether the task itself was cancelled, and not only the call that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


# Whether a call of a model server evicts the server's prompt cache of a conversation.

SECONDS = 5.0
_STAND_IN = "stand_in"
_SLOTS = ("--parallel", "-np")


def has_prefixes(routing: Routing, provider: str) -> bool:
    """Whether users notice what a model server keeps of their conversations: not the stand-in, none on the internet."""
    endpoint = routing.endpoints.get(provider)
    return endpoint is not None and provider != _STAND_IN and not is_cloud(endpoint.url)


async def loses_prefix(routing: Routing, provider: str) -> bool | None:
    """Whether a call in between makes the next turn of a conversation evaluate all of its prompt again; None if the
    server could not be asked.

    It does on a server of one slot without a memory cache. For a server that LoCAL2 starts, our own arguments and the
    `args` in models.yaml show it; llama.cpp reports its number of slots; for others, such as Ollama, the worst is
    assumed.
    """
    endpoint = routing.endpoints[provider]
    settings = routing.config.providers.get(provider)
    if settings is not None and settings.kind == "llama_server":
        known = _by_args(settings)
        if known is not None:
            return known
    if endpoint.kind == "ollama":
        return True
    slots = await _slots(endpoint.url)
    return None if slots is None else slots < 2


def _by_args(settings: Provider) -> bool | None:
    args = (CACHE[0], str(CACHE_MIB), *settings.args)
    cache, slots = _number(option(args, *CACHE)), _number(option(args, *_SLOTS))
    if cache or (slots or 0) > 1:  # a limit of -1 means none
        return False
    return True if slots == 1 else None


def _number(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() else None


def may_restore(routing: Routing, provider: str, model: str) -> bool:
    """Whether a conversation can be loaded again without asking anybody else's machine: on Ollama, and on servers that
    LoCAL2 starts. Other servers on this machine may pass on to one that charges for it.
    """
    endpoint = routing.endpoints[provider]
    is_ours = endpoint.kind == "ollama" or endpoint.only_model is not None
    return is_ours and not model.endswith(CLOUD_MODELS)


async def is_unloaded(routing: Routing, provider: str, model: str) -> bool | None:
    """Whether a model is no longer in the memory of its server; None where servers do not report that."""
    endpoint = routing.endpoints[provider]
    told = await _json_at(f"{endpoint.url}/api/ps") if endpoint.kind == "ollama" else None
    loaded = told.get("models") if told else None
    if not isinstance(loaded, list):
        return None
    names = [str(each.get("model")).removesuffix(":latest") for each in loaded if isinstance(each, dict)]
    return model.removesuffix(":latest") not in names


async def _slots(url: str) -> int | None:
    """Return the number of slots of a llama.cpp server; 1 if it does not report it, None if it does not answer."""
    told = await _json_at(f"{url.removesuffix('/v1')}/props")
    slots = None if told is None else told.get("total_slots", 1)
    return slots if isinstance(slots, int | None) else 1


async def _json_at(url: str) -> dict[str, Any] | None:
    """The JSON object at an address, empty for anything else; None if nobody answers there."""
    import httpx  # the arbiter has no other use for it

    try:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            reply = await client.get(url)
        told = reply.json() if reply.is_success else {}
    except httpx.HTTPError:
        return None
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
