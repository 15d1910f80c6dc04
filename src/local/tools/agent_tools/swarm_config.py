"""The settings of the swarm."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.config import Settings


class SwarmConfig(Settings):
    """`swarm.yaml`; the comments there say what each key means."""

    offer: Literal["none", "core", "all"] = "core"
    depth: int = Field(3, ge=1, le=3)
    children: int = Field(8, ge=1, le=64)
    agents: int = Field(40, ge=1, le=1000)
    tokens: int = Field(1_000_000, ge=1000)
    seconds: float = Field(1800, gt=0)
    calls: int = Field(500, ge=0)
    agent_tokens: int = Field(200_000, ge=1000)
    agent_seconds: float = Field(900, gt=0)
    agent_calls: int = Field(50, ge=0)
    wait_seconds: float = Field(600, gt=0, le=3600)
    max_result_chars: int = Field(100_000, ge=1000)
