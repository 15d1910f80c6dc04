"""The handlers of a durable consumer: who gets what it is given, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.bus.bus import Delivered
from local.bus.envelope import Envelope
from local.bus.message import Message
from local.bus.messages import QueryCancel, QueryReceived, ToolResult
from local.runtime import participant as subscription_module
from local.runtime.participant import DurableSubscriptions, Inbox, Participant, Settingless, on


class Reader(Participant):
    """Three handlers, one consumer."""

    name = "reader"

    @on(QueryReceived, durable="reader", concurrency=3, lane_width=2)
    async def read(self, message: QueryReceived, envelope: Envelope) -> Message | None: ...

    @on(QueryCancel, durable="reader")
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> Message | None: ...

    @on(ToolResult, durable="reader")
    async def note(self, message: ToolResult, envelope: Envelope) -> Message | None: ...


class Journal:
    """Stands in for the bus and for the consumer, and notes what it is told."""

    def __init__(self) -> None:
        self.wanted: dict[str, Any] = {}
        self.acknowledged: list[int] = []
        self.released: list[int] = []
        self.deliver: Callable[[Delivered], object]
        self.acknowledge, self.release = self.acknowledged.append, self.released.append

    def consume(self, name: str, subjects: list[str], receive: Any, replaced: Any, **bounds: int) -> Journal:
        self.wanted, self.deliver = {"name": name, "subjects": subjects, **bounds}, receive
        return self

    def give(self, number: int, subject: str, ttl_ms: int | None = None) -> Envelope:
        envelope = Envelope(subject, f"id-{number}", "you", "there", number, "q", b"{}", ttl_ms=ttl_ms)
        self.deliver(Delivered(number, 1, envelope))
        return envelope


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def subscriptions(journal: Journal) -> Any:
    found = make(journal).subscriptions
    return {subscription.subject: subscription for subscription in found}


def make(journal: Any) -> DurableSubscriptions:
    return DurableSubscriptions(journal, Reader(Settingless()), "reader", Reader.handlers(), lambda: None)


async def test_each_handler_gets_its_own_and_says_what_became_of_it(journal: Journal, subscriptions: Any) -> None:
    journal.give(1, "query.received")
    journal.give(2, "tool.result.web_search")
    first = await subscriptions["query.received"].inbox.take()
    second = await subscriptions["tool.result."].inbox.take()
    subscriptions["query.received"].not_done(first)
    subscriptions["tool.result."].done(second)
    assert (journal.released, journal.acknowledged) == ([1], [2])


def test_what_no_handler_wants_any_more_is_acknowledged(journal: Journal, subscriptions: Any) -> None:
    journal.give(1, "answer.dialog")
    assert journal.acknowledged == [1]


def test_what_there_is_no_room_for_is_given_back(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_module, "Inbox", lambda: Inbox(max_envelopes=1))
    make(journal)
    for number in (1, 2):
        journal.give(number, "query.received")
    assert journal.released == [2]
