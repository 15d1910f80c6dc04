"""Decides who may call a model server that serves few at once: users' turns first, background calls in line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import Field

from local.agents.answering.model_line import ModelLine
from local.config import Settings
from local.protocol.envelope import Envelope
from local.protocol.lease_messages import LeaseClaim, LeaseState
from local.runtime.participant import Kind, Participant, on

BEAT_SECONDS = 0.5


class ArbiterConfig(Settings):
    """`arbiter.yaml`; the comments there say what each key means."""

    slots: int = Field(1, ge=1)
    slots_of: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


class Arbiter(Participant):
    """Keeps a line for each model server. It holds nothing that it could lose: everybody says again what they want."""

    name = "arbiter"
    kind = Kind.SERVICE
    Config = ArbiterConfig

    def __init__(self, config: ArbiterConfig) -> None:
        super().__init__(config)
        self._settings = config
        self._lines: dict[str, ModelLine] = {}
        self._told: dict[str, LeaseState] = {}

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Repeat how the lines are, and notice who has gone silent."""
        beat = asyncio.create_task(self._beat(), name="lines for the models")
        try:
            yield
        finally:
            beat.cancel()

    @on(LeaseClaim)
    async def hear(self, claim: LeaseClaim, envelope: Envelope) -> None:
        """Somebody says what they want of a model server."""
        slots = self._settings.slots_of.get(claim.server, self._settings.slots)
        line = self._lines.setdefault(claim.server, ModelLine(slots))
        running = [lease.id for lease in claim.leases if lease.running]
        waiting = [lease.id for lease in claim.leases if not lease.running]
        line.claimed(envelope.instance, claim.turns, running, waiting, time.monotonic())
        state = _state(claim.server, line)
        if state != self._told.get(claim.server):
            self._tell(state)

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

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            for server, line in self._lines.items():
                line.forget_silent(time.monotonic())
                state = _state(server, line)
                if state != self._told[server] or line.is_wanted:
                    self._tell(state)

    def _tell(self, state: LeaseState) -> None:
        self._told[state.server] = state
        self.bus.post(state)


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
