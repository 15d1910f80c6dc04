"""Which agents a query has had work, by what is on record."""

from __future__ import annotations

from local.bus.envelope import Envelope
from local.bus.messages import QueryCancel
from local.journal.messages import JournalEntry
from local.queries.record import RecordedMessage, agents_in
from local.swarm.messages import AgentChanged


def recorded(message: AgentChanged | QueryCancel, *, redacted: bool = False) -> RecordedMessage:
    envelope = Envelope(message.subject, "e", "swarm", "i", 1, "q", b"{}" if redacted else message.encode())
    entry = JournalEntry(number=1, committed_at=1.0, redacted=redacted, frame=envelope.encode().decode())
    return RecordedMessage.of(entry)


def changed(agent_id: str, state: str, task: str = "") -> AgentChanged:
    return AgentChanged(
        agent_id=agent_id, name=agent_id, depth=1, state=state, query_id="q", root_query_id="q", task_query_id=task
    )


def test_each_task_is_there_once_as_it_was_last_told() -> None:
    told = [
        recorded(QueryCancel(query_id="q")),
        recorded(changed("a", "WORKING", "a-1")),
        recorded(changed("b", "WORKING", "b-1")),
        recorded(changed("a", "ENDED", "a-1")),
        recorded(changed("c", "READY")),
        recorded(changed("d", "WORKING", "d-1"), redacted=True),
    ]
    assert {query_id: each.state for query_id, each in agents_in(told).items()} == {"a-1": "ENDED", "b-1": "WORKING"}
