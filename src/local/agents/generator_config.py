"""The settings of the generator."""

from __future__ import annotations

from pydantic import Field

from local.config import Settings


class GeneratorConfig(Settings):
    """`generator.yaml`; the comments there say what each key means."""

    agent_id: str = "GeneratorAgent"
    model: str = "gemma4:12b"
    fast_model: str | None = None
    num_ctx: int = Field(32_000, ge=512)
    think: bool = True
    temperature: float | None = Field(None, ge=0)
    max_tool_iterations: int = Field(5, ge=0)
    timeout_seconds: float = Field(120, gt=0)
    tool_timeout_seconds: float = Field(30, gt=0)
    max_concurrent_turns: int = Field(128, ge=1)
    max_waiting_turns: int = Field(16, ge=0)
    system_prompt: str = "You are LoCAL2, an assistant that runs on its user's own machine."
