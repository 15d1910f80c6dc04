"""Reflection beside a memory with some exchanges; its routines run on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_stage.frontend import SECONDS
from agent_stage.served import Served

from local.memory.messages import MemoryIngested
from local.models.leases import Leases
from local.reflection.agent import Reflection
from local.reflection.messages import (
    GoalRecord,
    GoalRequest,
    GoalResult,
    GoalVerb,
    RoutineName,
    RoutineRecord,
    RoutineRequest,
    RoutineResult,
    RoutineVerb,
)
from local.reflection.routine import BackgroundModel, ReflectionConfig, RoutineContext, RoutineDiary, RoutineState

NOON = 1_795_435_200.0  # of some day
QUIET = {
    "dream_every_hours": 1e6, "dream_idle_minutes": 0.0, "monologue_idle_minutes": 0.0, "heartbeat_idle_minutes": 0.0,
}  # fmt: skip


class WatchedLeases(Leases):
    """Tells for what leases were taken."""

    def __init__(self) -> None:
        super().__init__()
        self.purposes: list[str] = []

    async def in_background(self, model: str, purpose: str, work: Callable[[], Any]) -> Any:
        self.purposes.append(purpose)
        return await super().in_background(model, purpose, work)


@dataclass
class Night:
    """`remembering` is the one of memory/conftest.py."""

    remembering: Any
    folder: Path
    now: float = NOON
    leases: WatchedLeases = field(default_factory=WatchedLeases)

    def __post_init__(self) -> None:
        self.memory, self.frontend, self.model = (
            self.remembering,
            self.remembering.frontend,
            self.remembering.stage.model,
        )
        self.served: Served

    async def begins(self, **settings: Any) -> Reflection:
        context = RoutineContext(BackgroundModel(self.model, "gemma", self.leases), clock=lambda: self.now)
        config = ReflectionConfig(**{**QUIET, **settings})
        reflection = Reflection(config, context, self.folder, self.folder / "settings")
        self.served = await self.memory.stage.serve(reflection)
        return reflection

    async def said(self, *texts: str, **fields: Any) -> None:
        for text in texts:
            await self.memory.answered(f"q {text}", text, **fields)
            await self.frontend.hears(MemoryIngested, query_id=f"q {text}")

    async def ask(self, verb: RoutineVerb, routine: RoutineName = "dreamer") -> RoutineRecord:
        result = await self.frontend.bus.request(RoutineRequest(verb=verb, routine=routine), RoutineResult, SECONDS)
        state: RoutineRecord = result.state
        return state

    async def goals(self, verb: GoalVerb = "list", **fields: Any) -> tuple[GoalRecord, ...]:
        result: GoalResult = await self.frontend.bus.request(GoalRequest(verb=verb, **fields), GoalResult, SECONDS)
        if result.error is not None:
            raise AssertionError(result.error.message)
        return result.goals

    def state(self, file_name: str = "dreams.json") -> RoutineState:
        return RoutineDiary(self.folder, file_name).read()

    async def holds(self, notes: dict[str, tuple[str, ...]]) -> None:
        """Wait for it."""
        async with asyncio.timeout(SECONDS):
            while await self.holding() != notes:  # each look is a request over the bus
                pass

    async def holding(self) -> dict[str, tuple[str, ...]]:
        notes = (await self.memory.ask("notes")).engrams
        return {note.answer: tuple(note.recalled) for note in notes}

    async def engram_ids(self) -> dict[str, str]:
        """Return the engrams by their questions."""
        return {each.query: each.engram_id for each in (await self.memory.ask("list", limit=50)).engrams}
