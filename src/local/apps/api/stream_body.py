"""What a browser says its stream is to carry."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from local.apps.api.identifiers import Id

MAX_SESSIONS, MAX_QUERIES = 64, 256


class BusBody(BaseModel):
    """What is to be carried of the bus: subjects and families, with payloads or only their sizes."""

    model_config = ConfigDict(extra="forbid", strict=True)
    subjects: Annotated[tuple[str, ...], Field(strict=False)] = ("",)
    payload: Literal["none", "full"] = "none"


class StreamBody(BaseModel):
    """The body of POST /stream/{stream_id}. What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", strict=True)
    sessions: Annotated[tuple[Id, ...], Field(max_length=MAX_SESSIONS, strict=False)] = ()
    queries: Annotated[tuple[Id, ...], Field(max_length=MAX_QUERIES, strict=False)] = ()
    list: bool = False
    participants: bool = False
    bus: BusBody | None = None
