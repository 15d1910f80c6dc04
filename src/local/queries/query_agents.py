"""Which agents a query has had work, as its messages on record tell it."""

from __future__ import annotations

from collections.abc import Iterable

from local.errors import MalformedFrame
from local.protocol.agent_messages import AgentChanged
from local.queries.recorded_query import RecordedMessage


def agents_in(recorded: Iterable[RecordedMessage]) -> dict[str, AgentChanged]:
    """The latest that was said of each agent that the query has made, by the query of its task, in order."""
    found: dict[str, AgentChanged] = {}
    for entry, envelope in recorded:
        if envelope.subject != AgentChanged.subject or entry.redacted:
            continue
        try:
            changed = AgentChanged.decode(envelope.payload)
        except MalformedFrame:
            continue
        if changed.task_query_id:
            found[changed.task_query_id] = changed
    return found
