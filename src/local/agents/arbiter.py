"""Decides who may call a model server that serves few at once: users' turns first, background calls in line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from local.config import Settings
from local.protocol.envelope import Envelope
from local.protocol.lease_messages import LeaseClaim, LeaseState
from local.runtime.participant import Kind, Participant, on

BEAT_SECONDS = 0.5
SILENT_SECONDS = 2.5  # a claim is repeated twice a second


class ArbiterConfig(Settings):
    """`arbiter.yaml`; the comments there say what each key means."""

    slots: int = Field(1, ge=1)
    slots_of: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


class Arbiter(Participant):
    """Keeps a line for each model server. It holds nothing that it could lose: everybody says again what they want."""

    name = "arbiter"
    kind = Kind.SERVICE
    Config = ArbiterConfig
    publishes = (LeaseState,)

    def __init__(self, config: ArbiterConfig) -> None:
        super().__init__(config)
        self._settings = config
        self._lines: dict[str, ModelLine] = {}
        self._told: dict[str, LeaseState] = {}
        self._beat: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Repeat how the lines are while anybody uses them, and notice who has gone silent."""
        try:
            yield
        finally:
            if self._beat is not None:
                self._beat.cancel()

    @on(LeaseClaim)
    async def hear(self, claim: LeaseClaim, envelope: Envelope) -> None:
        """Somebody says what they want of a model server."""
        slots = self._settings.slots_of.get(claim.server, self._settings.slots)
        line = self._lines.setdefault(claim.server, ModelLine(slots))
        running = [lease.id for lease in claim.leases if lease.running]
        waiting = [lease.id for lease in claim.leases if not lease.running]
        line.claimed(envelope.instance, claim.turns, running, waiting, time.monotonic())
        if _state(claim.server, line) != self._told.get(claim.server):
            self._tell(claim.server)
        self._keep_beating()

    def figures(self) -> dict[str, int]:
        """How many users' turns are under way, how many background calls run, and how many wait."""
        lines = self._lines.values()
        return {
            "turns": sum(line.turns for line in lines),
            "leases_granted": sum(len(line.granted) for line in lines),
            "leases_waiting": sum(len(line.waiting) + len(line.revoked) for line in lines),
        }

    def details(self) -> dict[str, str]:
        """The line for each model server."""
        return {server: _in_words(line) for server, line in self._lines.items()}

    def _keep_beating(self) -> None:
        if self._beat is None and any(line.is_wanted for line in self._lines.values()):
            self._beat = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._on_beat)

    def _on_beat(self) -> None:
        self._beat = None
        for server, line in self._lines.items():
            line.forget_silent(time.monotonic())
            self._tell(server)
        self._keep_beating()

    def _tell(self, server: str) -> None:
        """Nobody needs to hear of a line that no lease is in, but for the one time when the last has left."""
        state, told = _state(server, self._lines[server]), self._told.get(server)
        self._told[server] = state
        if state.is_used or (told is not None and told.is_used):
            self.bus.post(state)


@dataclass(slots=True)
class _Claimant:
    heard_at: float
    turns: int
    leases: frozenset[str]


class ModelLine:
    """A server that serves `slots` calls at once. Users' turns come first; what they leave is for leases.

    A lease holds a place from the moment it is granted until its owner says that it does not run any more: being
    revoked frees nothing yet. The same claims give the same line, whoever was heard first after a restart.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._claimants: dict[str, _Claimant] = {}
        self._holding: list[str] = []  # in the order in which they were granted
        self._waiting: list[str] = []  # in the order in which they came; one that was revoked goes to the head

    def claimed(self, instance: str, turns: int, running: Sequence[str], waiting: Sequence[str], now: float) -> None:
        """A process says all that it wants: `turns` users' turns, leases that run, leases that wait."""
        before = self._claimants.get(instance)
        self._remove((before.leases if before else frozenset()) - {*running, *waiting})
        self._claimants[instance] = _Claimant(now, turns, frozenset((*running, *waiting)))
        for lease in running:  # perhaps unknown here: it began without an arbiter, or with one that has died
            if lease not in self._holding:
                self._remove({lease})
                self._holding.insert(0, lease)
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
        """Whoever was not heard for 2.5 s has gone, with all that it had."""
        silent = [name for name, claimant in self._claimants.items() if now - claimant.heard_at > SILENT_SECONDS]
        for instance in silent:
            self._remove(self._claimants.pop(instance).leases)
        self._grant()

    @property
    def is_wanted(self) -> bool:
        """Whether anybody uses the server, or waits for it."""
        return bool(self._claimants)

    @property
    def turns(self) -> int:
        """Users' turns under way."""
        return sum(claimant.turns for claimant in self._claimants.values())

    @property
    def granted(self) -> tuple[str, ...]:
        """Leases that may run."""
        return tuple(self._holding[: self._places])

    @property
    def revoked(self) -> tuple[str, ...]:
        """Leases that have to stop, the youngest: their places are needed."""
        return tuple(self._holding[self._places :])

    @property
    def waiting(self) -> tuple[str, ...]:
        """Leases that wait, the next one first."""
        return tuple(self._waiting)

    @property
    def _places(self) -> int:
        return max(0, self.slots - self.turns)

    def _grant(self) -> None:
        while self._waiting and len(self._holding) < self._places:
            self._holding.append(self._waiting.pop(0))

    def _remove(self, leases: frozenset[str] | set[str]) -> None:
        self._holding = [lease for lease in self._holding if lease not in leases]
        self._waiting = [lease for lease in self._waiting if lease not in leases]

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
    )


def _in_words(line: ModelLine) -> str:
    parts = {"running": line.granted, "stopping": line.revoked, "waiting": line.waiting}
    leases = ", ".join(f"{name}: {' '.join(ids) or '-'}" for name, ids in parts.items())
    return f"{line.slots} at once; users' turns: {line.turns}, {leases}"
