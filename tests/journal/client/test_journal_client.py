"""The publisher's hold on the journal, without a bus: what is resent, who is told what, and the end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.bus import sending as retry_table
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.core.errors import BusClosed, JournalFull, MalformedFrame, NotConfirmed
from local.journal import client as journal_client
from local.journal.client import JournalClient
from local.journal.messages import JournalConfirmed, JournalOpened

SECONDS = 30.0


def envelope(seq: int, envelope_id: str = "", subject: str = "query.received", payload: bytes = b"{}") -> Envelope:
    return Envelope(subject, envelope_id or f"id-{seq}", "me", "here", seq, "q", payload)


class Publisher:
    """A carrier and a client on it, and what that has said."""

    instance = "here"
    unpack_now = staticmethod(bytes)

    def __init__(self) -> None:
        self.heard: dict[str, Callable[[Envelope], object]] = {}
        self.resent: list[bytes] = []
        self.posted: list[Message] = []
        self.gaps: list[Any] = []
        self.news = asyncio.Event()
        self.post, self.dropped = self.posted.append, self.gaps.append
        self.link = JournalClient()
        self.link.open(self)

    def hear(self, message: Message) -> None:
        self.heard[message.routing_key](envelope(1, "", message.routing_key, message.encode()))

    def confirm(self, seq: int, envelope_id: str = "", seconds: float = SECONDS) -> asyncio.Future[None]:
        return self.link.confirm(envelope(seq, envelope_id), b"%d" % seq, seconds)

    async def has_resent(self, *frames: bytes) -> None:
        async with asyncio.timeout(SECONDS):
            while not set(frames) <= set(self.resent):
                self.news.clear()
                await self.news.wait()

    def subscribe(self, subject: str, receive: Callable[[Envelope], object]) -> Callable[[], None]:
        self.heard[subject] = receive
        return lambda: None

    def resend(self, frame: bytes) -> None:
        self.resent.append(frame)
        self.news.set()


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    monkeypatch.setattr(retry_table, "TICK_SECONDS", 0.001)
    monkeypatch.setattr(journal_client, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(journal_client, "PAUSE", 0.01)
    monkeypatch.setattr(journal_client, "FLUSH_SECONDS", 0.01)
    return Publisher()


async def test_the_commit_ends_the_wait_and_the_resending(publisher: Publisher) -> None:
    first, second = publisher.confirm(1), publisher.confirm(2)
    await publisher.has_resent(b"1", b"2")
    publisher.hear(JournalConfirmed(instance="here", ids=("id-1", "of somebody else")))
    await first
    assert not second.done()
    publisher.resent.clear()
    await publisher.has_resent(b"2")
    assert set(publisher.resent) == {b"2"}


async def test_a_publisher_that_does_not_wait_any_more_is_forgotten(publisher: Publisher) -> None:
    publisher.confirm(1).cancel()
    second = publisher.confirm(2)
    await publisher.has_resent(b"2")
    assert b"1" not in publisher.resent
    publisher.hear(JournalConfirmed(instance="here", ids=("id-1", "id-2")))
    await second
    await asyncio.sleep(0)
    assert not len(publisher.link._retries)


async def test_one_id_published_twice_is_confirmed_to_both_and_given_up_by_each_at_its_own_time(
    publisher: Publisher,
) -> None:
    patient, impatient = publisher.confirm(1, "same"), publisher.confirm(2, "same", seconds=0.01)
    with pytest.raises(NotConfirmed) as raised:
        await impatient
    assert raised.value.seconds == 0.01
    another = publisher.confirm(3, "same")
    another.cancel()
    await publisher.has_resent(b"1")
    publisher.hear(JournalConfirmed(instance="here", ids=("same",)))
    await patient


async def test_what_the_journal_has_no_room_for_is_refused_in_its_words(publisher: Publisher) -> None:
    refused, kept = publisher.confirm(1), publisher.confirm(2)
    error = ErrorInfo(kind="store_full", message="journal.db: the disk is full")
    publisher.hear(JournalConfirmed(instance="here", refused=("id-1",), error=error))
    with pytest.raises(JournalFull, match=r"journal\.db: the disk is full"):
        await refused
    assert not kept.done()
    kept.cancel()


async def test_a_journal_that_comes_back_gets_everything_at_once(publisher: Publisher) -> None:
    waiting = publisher.confirm(1)
    publisher.hear(JournalOpened())
    assert publisher.resent == [b"1"]
    waiting.cancel()


async def test_recorded_messages_are_resent_until_they_are_confirmed(publisher: Publisher) -> None:
    for seq in (2, 1, 3):
        publisher.link.record(envelope(seq, subject="answer.dialog"), b"%d" % seq)
    await publisher.has_resent(b"1", b"2", b"3")
    publisher.hear(JournalConfirmed(instance="here", ids=("id-1",)))
    publisher.resent.clear()
    await publisher.has_resent(b"2", b"3")
    assert set(publisher.resent) == {b"2", b"3"}


async def test_closing_waits_a_moment_for_what_is_recorded(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_client, "FLUSH_SECONDS", SECONDS)
    publisher.link.record(envelope(1, subject="answer.dialog"), b"1")
    closing = asyncio.create_task(publisher.link.close())
    await asyncio.sleep(0)
    assert not closing.done()
    publisher.hear(JournalConfirmed(instance="here", ids=("id-1",)))
    await asyncio.wait_for(closing, SECONDS / 2)


async def test_closing_ends_every_wait_and_nothing_is_sent_afterwards(publisher: Publisher) -> None:
    raised: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    publisher.link.record(envelope(1, subject="answer.dialog"), b"recorded")
    waiting = [publisher.confirm(1), publisher.confirm(2, "same"), publisher.confirm(3, "same")]
    await publisher.link.close()
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    with pytest.raises(BusClosed):
        await publisher.confirm(4)
    publisher.link.record(envelope(2, subject="answer.dialog"), b"recorded")
    assert [type(error) for error in errors] == [BusClosed] * 3
    publisher.resent.clear()
    await asyncio.sleep(0.05)
    assert publisher.resent == []
    del errors, waiting
    gc.collect()
    assert raised == []


async def test_closing_that_is_cancelled_ends_the_waits_all_the_same(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_client, "FLUSH_SECONDS", SECONDS)
    publisher.link.record(envelope(1, subject="answer.dialog"), b"recorded")
    waiting = publisher.confirm(1)
    closing = asyncio.create_task(publisher.link.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(BusClosed):
        await waiting


async def test_a_confirmation_that_cannot_be_read_is_malformed(publisher: Publisher) -> None:
    with pytest.raises(MalformedFrame):
        publisher.heard["journal.confirmed.here"](envelope(1, payload=b"{"))
