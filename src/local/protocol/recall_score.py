"""How near a remembered exchange was to what was looked for: numbers alone, which may stay when its text is deleted."""

from __future__ import annotations

from pydantic import Field

from local.protocol.message import Data


class RecallScore(Data):
    """One engram of a search. `similarity` is the cosine of question and exchange, null if only words were searched;
    `parts` are what `relevance` is made of, by name: where `fused` is below `threshold`, it was not good enough. Its
    age then is null where that was not noted; `outdated` says that something in it held no more."""

    engram_id: str
    relevance: float
    similarity: float | None = None
    parts: dict[str, float] = Field(default_factory=dict)
    asked_at: float | None = None  # seconds since 1970
    age_seconds: float | None = None
    outdated: bool = False
