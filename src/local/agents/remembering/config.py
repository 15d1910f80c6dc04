"""The settings of the memory."""

from __future__ import annotations

from pydantic import Field

from local.config import Settings


class MemoryConfig(Settings):
    """`memory.yaml`; the comments there say what each key means."""

    classify: bool = True
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(120, gt=0)
    embedding_model: str = "nomic-embed-text"
