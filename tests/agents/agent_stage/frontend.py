"""A frontend for tests: asks queries, and receives every message on the bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import AgentTransition, QueryCancel, QueryReceived
from local.runtime.machine import changes

M = TypeVar("M", bound=Message)
SECONDS = 90.0  # a test that waits so long has failed


class Frontend:
    """A frontend that asks queries, and records every message on the bus."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.heard: list[Envelope] = []
        self._news = asyncio.Event()
        bus.subscribe("", self._hear)

    async def ask(
        self, query: str, query_id: str, *, session: str | None = "s", envelope_id: str | None = None, **fields: Any
    ) -> Envelope:
        message = QueryReceived(query_id=query_id, query=query, **fields)
        return await self.bus.publish(message, Trace(query_id, None, session, "user"), envelope_id=envelope_id)

    async def cancel(self, query_id: str) -> None:
        await self.bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    def of(self, kind: type[M], **fields: Any) -> list[M]:
        """Return every received message of a kind, with these values in its fields."""
        return [message for _, message in self._matching(kind, fields)]

    def envelopes(self, kind: type[M], **fields: Any) -> list[Envelope]:
        return [envelope for envelope, _ in self._matching(kind, fields)]

    async def hears(self, kind: type[M], times: int = 1, **fields: Any) -> M:
        """Wait for the message number `times` of its sort, and return it."""
        await self.until(lambda: len(self.of(kind, **fields)) >= times)
        return self.of(kind, **fields)[times - 1]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a received message makes the condition true."""
        async with asyncio.timeout(SECONDS):
            while not is_so():
                self._news.clear()
                await self._news.wait()

    def subjects(self, query_id: str) -> list[str]:
        """The subjects of everything that belongs to a query, in order; transitions by the state they lead to. What was
        sent again counts once."""
        mine = [envelope for envelope in self.heard if envelope.correlation_id == query_id]
        once = {_is_repeated_as(envelope): envelope for envelope in mine}
        return [
            said
            for envelope in once.values()
            for said in (
                [f"-> {change.to_state}" for change in changes(AgentTransition.decode(envelope.payload))]
                if envelope.subject == AgentTransition.subject
                else [envelope.subject]
            )
        ]

    def _matching(self, kind: type[M], fields: Mapping[str, Any]) -> list[tuple[Envelope, M]]:
        exact = kind.subject if not kind.family_key else None
        found = [
            (envelope, message)
            for envelope in self.heard
            if envelope.subject == exact or (exact is None and envelope.subject.startswith(kind.subject))
            for message in _apart(kind.decode(envelope.payload))
        ]
        return [(envelope, message) for envelope, message in found if fields.items() <= dict(message).items()]

    def _hear(self, envelope: Envelope) -> None:
        self.heard.append(envelope)
        self._news.set()


def _is_repeated_as(envelope: Envelope) -> tuple[str, str]:
    """What all copies of a message have in common: its id, or for a tool's result the request that it answers."""
    is_result = envelope.subject.startswith("tool.result.")
    return envelope.subject, (is_result and envelope.in_reply_to) or envelope.id


def _apart(message: M) -> Iterable[M]:
    """Return each change of a transition by itself, and any other message unchanged."""
    return changes(message) if isinstance(message, AgentTransition) else (message,)
