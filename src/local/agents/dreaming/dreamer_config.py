"""The settings of the dreamer."""

from __future__ import annotations

from pydantic import Field

from local.config import Settings


class DreamerConfig(Settings):
    """`dreamer.yaml`; the comments there say what each key means."""

    dream: bool = True
    every_hours: float = Field(24.0, gt=0)
    idle_minutes: float = Field(10.0, ge=0)
    least_exchanges: int = Field(3, ge=1)
    tokens_per_day: int = Field(20_000, ge=0)
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(300, gt=0)
