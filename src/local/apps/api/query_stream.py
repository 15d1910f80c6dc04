"""One query as server-sent events."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from pydantic_core import to_json

from local.apps.api.answers import answer_of
from local.apps.api.following import Trail, batches
from local.apps.api.sse import KEEP_ALIVE, sse
from local.apps.api.streamed import Chunks
from local.apps.exchange import Event, Exchange


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """`instance` begins every event's id; `keep_alive_seconds` is how often a comment is sent."""

    instance: str
    trail: Trail
    keep_alive_seconds: float


def number_after(last_event_id: str | None, instance: str) -> int | None:
    """The last event that a client has seen: 0 for none yet, None if the id is not one of this process."""
    if not last_event_id:
        return 0
    of, _, number = last_event_id.rpartition("-")
    return int(number) if of == instance and number.isascii() and number.isdecimal() and len(number) < 16 else None


async def query_chunks(exchange: Exchange, after: int | None, settings: StreamSettings) -> Chunks:
    """The events after number `after` up to the answer and its trail."""
    followed = batches(exchange, after, tick_seconds=settings.keep_alive_seconds, trail=settings.trail)
    async with aclosing(followed):
        async for events in followed:
            yield b"".join([_event(event, exchange, settings.instance) for event in events]) or KEEP_ALIVE


def _event(event: Event, exchange: Exchange, instance: str) -> bytes:
    payload = event.payload
    if event.kind == "response" and exchange.response is not None:
        payload = to_json(answer_of(exchange, exchange.response), by_alias=True)
    return sse(event.kind, payload, f"{instance}-{event.number}")
