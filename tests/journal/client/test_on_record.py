"""What the journal has of one query, for whoever was not there."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import QueryCancel, QueryReceived
from local.core.errors import RecordUnreadable
from local.journal import client as record
from local.journal.client import messages_on_record
from local.journal.messages import JournalRedact, JournalRedacted

SECONDS = 20.0


async def test_the_messages_of_one_query_are_read_page_by_page_and_no_others(
    scene: Any, journal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "PAGE", 2)
    bus = await scene.bus()
    for query in ("one", "two", "three", "four", "five"):
        await bus.publish(QueryReceived(query_id="q1", query=query), Trace("q1", session_id="s"))
    await bus.publish(QueryCancel(query_id="q1"), Trace("q1"))
    await bus.publish(QueryReceived(query_id="q2", query="other"), Trace("q2"))
    found = await messages_on_record(bus, "q1", (QueryReceived,), SECONDS)
    assert [asked.query for asked, _ in found] == ["one", "two", "three", "four", "five"]
    assert {envelope.session_id for _, envelope in found} == {"s"}


async def test_what_was_removed_is_left_out(scene: Any, journal: Any) -> None:
    bus = await scene.bus()
    await bus.publish(QueryReceived(query_id="q1", query="one"), Trace("q1", session_id="s"))
    await bus.request(JournalRedact(session_id="s"), JournalRedacted, SECONDS)
    assert await messages_on_record(bus, "q1", (QueryReceived,), SECONDS) == []


async def test_without_a_journal_nobody_knows_and_that_is_said(scene: Any) -> None:
    bus = await scene.bus()
    with pytest.raises(RecordUnreadable, match="journal did not answer within"):
        await messages_on_record(bus, "q1", (QueryReceived,), 0.05)
