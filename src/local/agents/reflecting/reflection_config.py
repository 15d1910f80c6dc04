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
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(300, gt=0)

    def dreaming(self) -> RoutinePolicy:
        """When the dreamer may look back."""
        return RoutinePolicy(
            self.dream, self.dream_every_hours * HOUR, self.dream_idle_minutes * MINUTE, self.dream_tokens_per_day
        )
