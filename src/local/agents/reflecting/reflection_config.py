"""The settings of reflection."""

from __future__ import annotations

from pydantic import Field

from local.agents.reflecting.routine_time import HOUR, MINUTE, RoutinePolicy
from local.config import Settings


class ReflectionConfig(Settings):
    """`reflection.yaml`; the comments there say what each key means."""

    dream: bool = True
    dream_every_hours: float = Field(24.0, gt=0)
    dream_idle_minutes: float = Field(10.0, ge=0)
    dream_least_exchanges: int = Field(3, ge=1)
    dream_tokens_per_day: int = Field(20_000, ge=0)
    monologue: bool = False
    monologue_every_minutes: float = Field(60.0, gt=0)
    monologue_idle_minutes: float = Field(5.0, ge=0)
    monologue_tokens_per_day: int = Field(10_000, ge=0)
    heartbeat: bool = True
    heartbeat_idle_minutes: float = Field(2.0, ge=0)
    heartbeat_tokens_per_day: int = Field(20_000, ge=0)
    heartbeat_most_goals: int = Field(30, ge=0, le=200)
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(300, gt=0)

    def dreaming(self) -> RoutinePolicy:
        """When the dreamer may look back."""
        return RoutinePolicy(
            self.dream, self.dream_every_hours * HOUR, self.dream_idle_minutes * MINUTE, self.dream_tokens_per_day
        )

    def thinking(self) -> RoutinePolicy:
        """When the inner monologue may think."""
        every, idle = self.monologue_every_minutes * MINUTE, self.monologue_idle_minutes * MINUTE
        return RoutinePolicy(self.monologue, every, idle, self.monologue_tokens_per_day)

    def beating(self) -> RoutinePolicy:
        """When the heartbeat may check goals; each goal says itself how often."""
        return RoutinePolicy(self.heartbeat, 0.0, self.heartbeat_idle_minutes * MINUTE, self.heartbeat_tokens_per_day)
