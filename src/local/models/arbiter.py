"""Decides who may call a model server that serves few at once: users' turns first, background calls in line.

A server with one slot and no memory cache keeps the prefix of one conversation alone. A background call between two
turns would evict it, and the next turn would evaluate the whole conversation again. There background calls wait until
no user has had a turn of the model for `quiet_seconds`; then those that wait run one after the other, until a user's
turn interrupts them. Where the server keeps prompts, two seconds are enough.

A server with memory for one model unloads the one that answers for a call of another. Whether it does is asked after
the first such call; from then on those calls wait for quiet as well. When no background call is left that may run, what
they have evicted is loaded again: `LeaseState.restore` asks the process for it that had the last turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field

from local.bus.envelope import Envelope
from local.core.config import Settings
from local.core.routing import Routing
from local.models.lease_messages import Lease, LeaseClaim, LeaseState
from local.models.leases import has_prefixes, is_unloaded, loses_prefix, may_restore
from local.runtime.participant import Kind, Participant, Resources, on

log = logging.getLogger(__name__)

BEAT_SECONDS = 0.5
SILENT_SECONDS = 2.5  # a claim is repeated twice a second
# If quiet counts, a queue that was empty grants nothing before every process can have reported its turns.
SETTLE_SECONDS = 1.0
ASK_AGAIN_SECONDS = 60.0  # a server that could not be asked about its cache
KEPT_SECONDS = 2.0  # of quiet, where the server keeps the prompts that it has read
IDLE_SECONDS = 60.0  # without a question, before calls that can wait until nobody uses the system
RESTORED_SECONDS = 1800.0  # after the last turn; then its user has probably left
JITTER_SECONDS = 0.2  # between two claims of the same turn


class ArbiterConfig(Settings):
    """The settings in `arbiter.yaml`; the comments there explain each key."""

    slots: int = Field(1, ge=1)
    slots_of: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    quiet_seconds: float = Field(60, ge=0)


class Arbiter(Participant):
    """The participant that grants leases: it keeps a queue of background calls for each model server. It has no state
    to lose: every process repeats its claims.
    """

    name = "arbiter"
    kind = Kind.SERVICE
    Config = ArbiterConfig
    publishes = (LeaseState,)

    def __init__(self, config: ArbiterConfig, routing: Routing | None = None) -> None:
        """Without a `routing` no server is known to lose prefixes, and nothing waits for quiet."""
        super().__init__(config)
        self._settings, self._routing = config, routing
        self._begun = time.monotonic()
        self._lines: dict[str, ModelLine] = {}
        self._ask_at: dict[str, float] = {}  # when to ask a server that has not yet reported what it caches
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._told: dict[str, LeaseState] = {}
        self._beat: asyncio.TimerHandle | None = None

    @classmethod
    def build(cls, config: ArbiterConfig, resources: Resources) -> Self:
        """Build it with the model servers, because the effect of a background call on their caches matters."""
        return cls(config, resources.routing)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Repeat the state of the queues while they are used, and notice processes that became silent."""
        try:
            yield
        finally:
            if self._beat is not None:
                self._beat.cancel()
            for task in self._asking.values():
                task.cancel()

    @on(LeaseClaim)
    async def receive(self, claim: LeaseClaim, envelope: Envelope) -> None:
        """Receive the claims of one process on a model server."""
        line = self._lines.get(claim.server) or self._new_line(claim.server)
        now = time.monotonic()
        if now >= self._ask_at.get(claim.server, float("inf")):
            self._ask_at[claim.server] = now + ASK_AGAIN_SECONDS
            self._asking[claim.server] = asyncio.create_task(self._ask(claim.server), name=f"cache of {claim.server}")
        line.claimed(envelope.instance, claim.turns, claim.leases, now, claim.last_turns)
        self._restore(claim.server)
        if _state(claim.server, line) != self._told.get(claim.server):
            self._publish(claim.server)
        self._keep_beating()

    def metrics(self) -> dict[str, int]:
        """Return the numbers of users' turns under way, of running background calls, and of waiting ones."""
        lines = self._lines.values()
        return {
            "turns": sum(line.turns for line in lines),
            "leases_granted": sum(len(line.granted) for line in lines),
            "leases_waiting": sum(len(line.waiting) + len(line.revoked) for line in lines),
        }

    def details(self) -> dict[str, str]:
        """The line for each model server."""
        return {server: _in_words(line) for server, line in self._lines.items()}

    def _new_line(self, server: str) -> ModelLine:
        """A line that waits for quiet until it is known that its server does not need that."""
        stated = self._routing.config.slots_at(server) if self._routing else None
        slots = stated or self._settings.slots_of.get(server, self._settings.slots)
        counts = self._routing is not None and has_prefixes(self._routing, server) and slots == 1
        quiet = self._settings.quiet_seconds if counts else 0.0
        line = self._lines[server] = ModelLine(slots, quiet, self._begun)
        if quiet:
            self._ask_at[server] = 0.0
        return line

    async def _ask(self, server: str) -> None:
        """Ask a server what it caches; until it has answered the worst is assumed."""
        assert self._routing is not None
        loses = await loses_prefix(self._routing, server)
        if loses is None:
            return
        del self._ask_at[server]
        line = self._lines[server]
        line.evicts = loses
        if not loses:
            line.quiet_seconds = min(line.quiet_seconds, KEPT_SECONDS)
        log.info("%s: background calls begin after %g s without a question", server, line.quiet_seconds)

    def _restore(self, server: str) -> None:
        """Have what background calls have evicted loaded again, once it is known what that is."""
        model, asking = self._lines[server].to_restore, self._asking.get(server)
        if not model or self._routing is None or not may_restore(self._routing, server, model):
            return
        if asking is None or asking.done():
            looking = self._look_for(server, model)
            self._asking[server] = asyncio.create_task(looking, name=f"memory of {server}")

    async def _look_for(self, server: str, model: str) -> None:
        assert self._routing is not None
        line = self._lines[server]
        line.evicted(model, is_unloaded=await is_unloaded(self._routing, server, model))
        self._publish(server)

    def _keep_beating(self) -> None:
        if self._beat is None and any(line.is_wanted for line in self._lines.values()):
            self._beat = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._on_beat)

    def _on_beat(self) -> None:
        self._beat = None
        for server, line in self._lines.items():
            line.forget_silent(time.monotonic())
            self._restore(server)
            self._publish(server)
        self._keep_beating()

    def _publish(self, server: str) -> None:
        """Publish the state of a queue; one without leases only once, when the last has left, unless processes choose
        among several servers by the turns that these have.
        """
        state, told = _state(server, self._lines[server]), self._told.get(server)
        self._told[server] = state
        is_shared = self._routing is not None and server in self._routing.config.shared
        if state.is_used or state.restore or is_shared or (told is not None and told.is_used):
            self.bus.post(state)


@dataclass(slots=True)
class _Claimant:
    heard_at: float
    turns: int
    leases: frozenset[str]


class ModelLine:
    """The queue of calls for one model server, which serves `slots` calls at once. Users' turns come first; leases get
    the remaining places.

    A lease holds a place from the moment it is granted until its owner reports its end: revoking alone frees nothing.
    The same claims make the same queue, in whatever order they arrive after a restart.

    With `quiet_seconds` a patient lease begins only when no user's turn that it would evict was that recent, and is
    revoked by one: a turn of its model, or of any where the server has memory for one. `begun` is when the arbiter
    started: turns before that are unknown, so it counts as a turn. `evicts` says that the server keeps one prompt.
    """

    def __init__(self, slots: int, quiet_seconds: float = 0.0, begun: float = 0.0) -> None:
        self.slots, self.quiet_seconds = slots, quiet_seconds
        self.evicts = self.has_memory_for_one = False
        self.restore = ""  # the model whose last conversation is to be loaded again
        self._begun = self._now = begun
        self._settled_at = begun
        self._turn_at: dict[str, float] = {}  # the last turn, by model
        self._leases: dict[str, Lease] = {}  # by id
        self._ran: set[str] = set()  # models of the leases that were granted since the last turn
        self._ran_at, self._loaded = begun, ""
        self._claimants: dict[str, _Claimant] = {}
        self._holding: list[str] = []  # in the order in which they were granted
        self._waiting: list[str] = []  # in the order in which they came; one that was revoked goes to the head

    def claimed(
        self,
        instance: str,
        turns: int,
        leases: Sequence[Lease],
        now: float,
        last_turns: Mapping[str, float] | None = None,
    ) -> None:
        """Set all claims of a process: `turns` users' turns, and its leases. `last_turns` are how many seconds ago each
        model's last turn was.
        """
        self._now = now
        if not self._holding and not self._waiting:
            self._settled_at = now + SETTLE_SECONDS
        for model, seconds in (last_turns or {}).items():
            self._had_turn(model, now - seconds)
        running = [lease.id for lease in leases if lease.running]
        waiting = [lease.id for lease in leases if not lease.running]
        before = self._claimants.get(instance)
        self._remove((before.leases if before else frozenset()) - {*running, *waiting})
        self._claimants[instance] = _Claimant(now, turns, frozenset((*running, *waiting)))
        self._leases |= {lease.id: lease for lease in leases}
        for lease in running:  # perhaps unknown here: it began without an arbiter, or with one that has died
            if lease not in self._holding:
                self._waiting = [other for other in self._waiting if other != lease]
                self._hold(lease, 0)
        revoked = self.revoked
        for lease in waiting:
            if lease in revoked:  # it has stopped
                self._holding.remove(lease)
                self._waiting.insert(0, lease)
            elif lease not in self._holding and lease not in self._waiting:
                self._waiting.append(lease)
        self._forget_if_empty(instance)
        self._grant()

    def forget_silent(self, now: float) -> None:
        """Drop the claims of processes that have been silent for 2.5 s. Quiet may have begun meanwhile, too."""
        self._now = now
        silent = [name for name, claimant in self._claimants.items() if now - claimant.heard_at > SILENT_SECONDS]
        for instance in silent:
            self._remove(self._claimants.pop(instance).leases)
        self._grant()

    @property
    def is_wanted(self) -> bool:
        """Whether a process uses the server, or waits for it."""
        return bool(self._claimants)

    @property
    def turns(self) -> int:
        """Users' turns under way."""
        return sum(claimant.turns for claimant in self._claimants.values())

    @property
    def granted(self) -> tuple[str, ...]:
        """Leases that may run."""
        return tuple([lease for lease in self._holding if not self._is_disturbed(lease)][: self._places])

    @property
    def revoked(self) -> tuple[str, ...]:
        """Return the leases that have to stop, the youngest: their places are needed, or a conversation continues."""
        granted = self.granted
        return tuple(lease for lease in self._holding if lease not in granted)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Leases that wait, the next one first."""
        return tuple(self._waiting)

    @property
    def to_restore(self) -> str:
        """The model whose last conversation leases have evicted, while none of them can run; empty if there is none, or
        if `restore` says so already.
        """
        if not self._ran or self._holding or self.turns or not self._turn_at:
            return ""
        model = max(self._turn_at, key=lambda name: self._turn_at[name])
        is_over = self._now - self._turn_at[model] > RESTORED_SECONDS
        return "" if is_over or not self.evicts or model == self.restore else model

    def evicted(self, model: str, *, is_unloaded: bool | None) -> None:
        """The server was asked whether that model, of the last turn, is no longer in its memory; None: unknown."""
        if self.to_restore != model:  # a turn or a lease has begun meanwhile
            return
        if self._ran - {model}:
            self.has_memory_for_one = is_unloaded is True
        if is_unloaded is False and model not in self._ran:
            self._ran.clear()
        else:
            self.restore = model

    @property
    def _places(self) -> int:
        return max(0, self.slots - self.turns)

    @property
    def quiet_in(self) -> float:
        """Seconds until the first lease that waits may begin as far as turns are concerned; 0 where none has to."""
        return min((self._seconds_to_quiet(lease) for lease in self._waiting), default=0.0)

    def _had_turn(self, model: str, at: float) -> None:
        if at - self._turn_at.get(model, float("-inf")) > JITTER_SECONDS:
            self._turn_at[model], self._loaded = at, model
            if at > self._ran_at:
                self._ran.clear()
                self.restore = ""

    def _hold(self, lease: str, place: int) -> None:
        self._holding.insert(place, lease)
        self._ran_at, self.restore, self._loaded = self._now, "", self._leases[lease].model
        if self._leases[lease].kind == "restore":
            self._ran.clear()
        else:
            self._ran.add(self._leases[lease].model)

    def _grant(self) -> None:
        for lease in sorted(self._waiting, key=self._rank):
            if len(self._holding) < self._places and not self._seconds_to_quiet(lease):
                self._waiting.remove(lease)
                self._hold(lease, len(self._holding))

    def _rank(self, lease: str) -> tuple[bool, bool]:
        """Idle calls go last, and calls of another model than the loaded one where there is memory for one."""
        is_idle = self._leases[lease].kind == "idle"
        return is_idle, self.has_memory_for_one and self._leases[lease].model != self._loaded

    def _is_disturbed(self, lease: str) -> bool:
        """Whether a conversation continues that this lease would evict."""
        at = self._last_turn(lease)
        return at is not None and self._now - at < self._quiet(lease)

    def _seconds_to_quiet(self, lease: str) -> float:
        quiet = self._quiet(lease)
        if not quiet:
            return 0.0
        at = self._last_turn(lease)
        quiet_at = (self._begun if at is None else max(self._begun, at)) + quiet
        return max(0.0, quiet_at - self._now, self._settled_at - self._now)

    def _quiet(self, lease: str) -> float:
        """The seconds without a turn that a lease needs."""
        kind = self._leases[lease].kind
        return IDLE_SECONDS if kind == "idle" else self.quiet_seconds if kind == "patient" else 0.0

    def _last_turn(self, lease: str) -> float | None:
        """The last turn that counts for a lease."""
        if self._leases[lease].kind == "idle" or self.has_memory_for_one:
            return max(self._turn_at.values(), default=None)
        return self._turn_at.get(self._leases[lease].model)

    def _remove(self, leases: frozenset[str] | set[str]) -> None:
        self._holding = [lease for lease in self._holding if lease not in leases]
        self._waiting = [lease for lease in self._waiting if lease not in leases]
        for lease in leases:
            self._leases.pop(lease, None)

    def _forget_if_empty(self, instance: str) -> None:
        claimant = self._claimants[instance]
        if not claimant.turns and not claimant.leases:
            del self._claimants[instance]


def _state(server: str, line: ModelLine) -> LeaseState:
    return LeaseState(
        server=server,
        slots=line.slots,
        turns=line.turns,
        granted=line.granted,
        revoked=line.revoked,
        waiting=line.waiting,
        restore=line.restore,
    )


def _in_words(line: ModelLine) -> str:
    parts = {"running": line.granted, "stopping": line.revoked, "waiting": line.waiting}
    leases = ", ".join(f"{name}: {' '.join(ids) or '-'}" for name, ids in parts.items())
    quiet = f", until quiet: {line.quiet_in:.0f} s" if line.quiet_in else ""
    return f"{line.slots} at once; users' turns: {line.turns}, {leases}{quiet}"


# When to begin background work: a moment after the last answer, for all answers together.

QUIET_SECONDS = 0.5
LONGEST_SECONDS = 2.0


class QuietPeriod:
    """A debounce: `begins` returns `quiet_seconds` after the last `disturbed`, by default half a second, and after
    `longest_seconds` at the latest, by default two. All callers continue at the same moment, so that they share commits
    and wake-ups."""

    def __init__(self, quiet_seconds: float | None = None, longest_seconds: float | None = None) -> None:
        self._quiet_seconds = QUIET_SECONDS if quiet_seconds is None else quiet_seconds
        self._longest_seconds = LONGEST_SECONDS if longest_seconds is None else longest_seconds
        self._disturbed_at = 0.0
        self._longest_until = 0.0
        self._begins: asyncio.Event | None = None

    def disturbed(self) -> None:
        """A user has asked, or was answered and may continue at once."""
        self._disturbed_at = asyncio.get_running_loop().time()

    async def begins(self) -> None:
        """Wait for the next one."""
        begins = self._begins
        if begins is None:
            self._begins = begins = asyncio.Event()
            self._longest_until = asyncio.get_running_loop().time() + self._longest_seconds
            self._look()
        await begins.wait()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        begins_at = min(self._disturbed_at + self._quiet_seconds, self._longest_until)
        if loop.time() < begins_at:
            loop.call_at(begins_at, self._look)
        elif self._begins is not None:
            self._begins.set()
            self._begins = None
