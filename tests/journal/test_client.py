"""The journal's client without a journal: what is resent and given up, what a consumer passes on and acknowledges."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from local.bus import sending
from local.bus.bus import Delivered
from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import QueryCancel, QueryReceived
from local.bus.sending import RetryTable
from local.core.errors import BusClosed, NotConfirmed
from local.journal import client
from local.journal.client import (
    JournalClient,
    JournalConsumer,
    JournalConsumers,
    RecordedBuffer,
    messages_on_record,
)
from local.journal.messages import (
    ConsumerClaim,
    JournalAck,
    JournalAttach,
    JournalConfirmed,
    JournalDeliver,
    JournalDetach,
    JournalFenced,
    JournalFlush,
    JournalFlushed,
    JournalOpened,
    JournalRedact,
    JournalRedacted,
    JournalWorking,
)

M = TypeVar("M", bound=Message)
SECONDS = 90.0

# Publishers


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
    monkeypatch.setattr(sending, "TICK_SECONDS", 0.001)
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "PAUSE", 0.01)
    monkeypatch.setattr(client, "FLUSH_SECONDS", 0.01)
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


async def test_a_journal_that_comes_back_gets_everything_at_once(publisher: Publisher) -> None:
    waiting = publisher.confirm(1)
    publisher.hear(JournalOpened())
    assert publisher.resent == [b"1"]
    waiting.cancel()


async def test_closing_waits_a_moment_for_what_is_recorded(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "FLUSH_SECONDS", SECONDS)
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
    gc.collect(1)  # the young ones: what has just been let go of
    assert raised == []


async def test_closing_that_is_cancelled_ends_the_waits_all_the_same(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "FLUSH_SECONDS", SECONDS)
    publisher.link.record(envelope(1, subject="answer.dialog"), b"recorded")
    waiting = publisher.confirm(1)
    closing = asyncio.create_task(publisher.link.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(BusClosed):
        await waiting


# Recorded messages


class Kept:
    """A buffer, what it has sent again, and what it has reported as dropped."""

    def __init__(self, count: int, *, max_count: int = 10_000, max_bytes: int = 1_000_000) -> None:
        self.sent: list[bytes] = []
        self.gaps: Counter[str] = Counter()
        self.retries: RetryTable[None] = RetryTable(self.sent.append)
        self.buffer = RecordedBuffer(self.retries, self._dropped, max_count, max_bytes)
        for number in range(1, count + 1):
            self.buffer.add(f"{number}", "agent.transition", b"%03d" % number)

    def sends_again(self) -> list[bytes]:
        """What it would send again now."""
        self.sent.clear()
        self.retries.hasten()
        return self.sent

    def _dropped(self, gaps: Mapping[str, int]) -> None:
        self.gaps.update(gaps)


async def test_one_that_is_sent_twice_by_its_publisher_is_kept_once() -> None:
    kept = Kept(1)
    kept.buffer.add("1", "agent.transition", b"again")
    assert kept.sends_again() == [b"001"]
    kept.buffer.confirmed("1")
    assert kept.sends_again() == []


async def test_only_a_window_is_sent_again_and_a_confirmation_lets_the_next_one_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "WINDOW", 2)
    kept = Kept(5)
    assert kept.sends_again() == [b"001", b"002"]
    kept.buffer.confirmed("4")
    kept.buffer.confirmed("1")
    assert kept.sends_again() == [b"002", b"003"]
    kept.buffer.confirmed("2")
    assert kept.sends_again() == [b"003", b"005"]


async def test_too_many_drop_the_oldest_and_say_so() -> None:
    kept = Kept(5, max_count=3)
    assert kept.sends_again() == [b"003", b"004", b"005"]
    assert kept.gaps == {"agent.transition": 2}


async def test_too_many_bytes_drop_the_oldest_but_never_the_newest() -> None:
    kept = Kept(5, max_bytes=7)
    assert kept.sends_again() == [b"004", b"005"]
    kept.buffer.add("6", "agent.transition", b"more than seven")
    assert kept.sends_again() == [b"more than seven"]


# Consumers


def delivered_frame(subject: str, payload: bytes = b"{}") -> Envelope:
    return Envelope(subject, "id", "journal", "there", 1, "q", payload)


class Process:
    """A carrier and a consumer on it, what that was given, and what it has said."""

    instance = "here"

    def __init__(self) -> None:
        self.heard: dict[str, Callable[[Envelope], object]] = {}
        self.posted: list[Message] = []
        self.given: list[Delivered] = []
        self.replaced = 0
        self.news = asyncio.Event()
        self.all = JournalConsumers(self, asyncio.get_running_loop)
        claim = ConsumerClaim(name="critic", subjects=("query.received",), max_in_flight=4, lane_width=2)
        self.consumer = JournalConsumer(self.all, claim, self.given.append, self._replace)

    def deliver(self, number: int, attempt: int = 1, *, after: int = 0, instance: str = "here") -> None:
        frame = delivered_frame("query.received").encode().decode()
        self.hear(
            JournalDeliver(
                consumer="critic", instance=instance, number=number, attempt=attempt, after=after, frame=frame
            )
        )

    def hear(self, message: Message) -> None:
        self.heard[message.routing_key](delivered_frame(message.routing_key, message.encode()))

    def said(self, kind: type[M]) -> list[M]:
        return [message for message in self.posted if isinstance(message, kind)]

    async def says(self, kind: type[M], times: int = 1) -> M:
        async with asyncio.timeout(SECONDS):
            while len(self.said(kind)) < times:
                self.news.clear()
                await self.news.wait()
        return self.said(kind)[times - 1]

    @property
    def numbers(self) -> list[int]:
        return [delivered.number for delivered in self.given]

    def _replace(self) -> None:
        self.replaced += 1

    unpack_now = staticmethod(bytes)

    def resend(self, frame: bytes) -> None: ...

    def dropped(self, gaps: Any) -> None: ...

    def subscribe(self, subject: str, receive: Callable[[Envelope], object]) -> Callable[[], None]:
        self.heard[subject] = receive
        return lambda: self.heard.pop(subject) and None

    def post(self, message: Message) -> None:
        self.posted.append(message)
        self.news.set()


@pytest.fixture
async def process(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    monkeypatch.setattr(client, "WORKING_SECONDS", 0.001)
    monkeypatch.setattr(client, "ATTACH_SECONDS", 0.001)
    process = Process()
    yield process
    await process.consumer.close()


async def test_it_attaches_when_it_starts_when_the_journal_may_be_another_and_again_and_again(process: Process) -> None:
    process.all.attach()
    assert process.posted == []  # not ready yet
    process.consumer.start()
    claim = ConsumerClaim(name="critic", subjects=("query.received",), max_in_flight=4, lane_width=2)
    attach = JournalAttach(consumers=(claim,))
    assert await process.says(JournalAttach) == attach
    process.all.attach()
    assert process.posted[-1] == attach
    assert await process.says(JournalAttach, 4) == attach


async def test_all_consumers_of_a_process_attach_in_one_message(process: Process) -> None:
    claim = ConsumerClaim(name="memory", subjects=("query.received",))
    other = JournalConsumer(process.all, claim, process.given.append, lambda: None)
    process.consumer.start()
    other.start()
    assert [claim.name for claim in (await process.says(JournalAttach)).consumers] == ["critic", "memory"]
    await other.close()
    process.posted.clear()
    assert [claim.name for claim in (await process.says(JournalAttach)).consumers] == ["critic"]


async def test_what_it_is_given_is_passed_on_once_and_with_its_first_attempt(process: Process) -> None:
    process.deliver(7, 2)
    process.deliver(7, 3)
    assert [(each.number, each.attempt, each.envelope.subject) for each in process.given] == [(7, 2, "query.received")]


async def test_what_is_done_and_comes_again_is_acknowledged_again(process: Process) -> None:
    process.deliver(7)
    process.consumer.acknowledge(7)
    await process.says(JournalAck)
    process.deliver(7, 2)
    assert process.said(JournalAck) == [JournalAck(consumer="critic", numbers=(7,))] * 2
    assert process.numbers == [7]


async def test_one_that_has_to_wait_for_another_is_dropped_until_that_one_has_come(process: Process) -> None:
    process.deliver(8, after=7)
    assert process.given == []
    process.deliver(7)
    process.deliver(8, 2, after=7)
    process.consumer.acknowledge(8)
    process.deliver(9, after=8)
    assert process.numbers == [7, 8, 9]


async def test_what_takes_long_is_said_to_be_worked_on_with_its_latest_attempt(process: Process) -> None:
    process.deliver(7)
    process.consumer.start()
    assert await process.says(JournalWorking) == JournalWorking(attempts={"critic": {7: 1}})
    process.deliver(7, 2)
    count = len(process.said(JournalWorking))
    assert (await process.says(JournalWorking, count + 1)).attempts == {"critic": {7: 2}}
    process.consumer.acknowledge(7)
    process.posted.clear()
    await process.says(JournalAttach, 3)
    assert process.said(JournalWorking) == []


async def test_replaced_it_says_so_once_and_says_nothing_more(process: Process) -> None:
    process.consumer.start()
    process.hear(JournalFenced(consumer="critic", instance="another"))
    assert process.replaced == 0
    fenced = process.heard["journal.fenced.critic"]
    process.hear(JournalFenced(consumer="critic", instance="here"))
    fenced(delivered_frame("", JournalFenced(consumer="critic", instance="here").encode()))
    await process.consumer.close()
    assert process.replaced == 1
    assert process.heard == {}
    assert process.said(JournalDetach) == []


async def test_what_it_has_done_is_remembered_within_bounds(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "KEPT_DONE", 10)
    for number in range(1, 1000):
        process.deliver(number)
        process.consumer.acknowledge(number)
    assert len(process.consumer._done) == 10
    assert process.consumer.attempts == {}


async def test_it_has_caught_up_when_what_it_held_at_the_journal_s_answer_has_ended(process: Process) -> None:
    waiting = asyncio.create_task(process.consumer.caught_up(SECONDS))
    hurry = await process.says(JournalFlush)
    for number in (7, 8, 9):
        process.deliver(number)
    for instance, mark in (("elsewhere", hurry.mark), ("here", hurry.mark + 1), ("here", hurry.mark)):
        assert not waiting.done()
        process.hear(JournalFlushed(consumer="critic", instance=instance, mark=mark))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    process.deliver(10)  # arrived later: nobody waits for it
    process.consumer.acknowledge(7)
    process.consumer.fail(8, "no")
    await asyncio.sleep(0)
    assert not waiting.done()
    process.consumer.release(9)
    assert await waiting


# The record


async def test_the_messages_of_one_query_are_read_page_by_page_and_no_others(
    scene: Any, journal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
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
