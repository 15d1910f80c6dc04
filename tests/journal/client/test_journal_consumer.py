"""One process's hold on a durable consumer, without a bus: what it passes on, acknowledges and says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from local.bus.bus import Delivered
from local.bus.envelope import Envelope
from local.bus.message import Message
from local.core.errors import MalformedFrame
from local.journal import client as journal_consumer
from local.journal.client import JournalConsumer, JournalConsumers
from local.journal.messages import (
    ConsumerClaim,
    JournalAck,
    JournalAttach,
    JournalDeliver,
    JournalDetach,
    JournalFenced,
    JournalFlush,
    JournalFlushed,
    JournalWorking,
)

M = TypeVar("M", bound=Message)
SECONDS = 30.0


def envelope(subject: str, payload: bytes = b"{}") -> Envelope:
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
        frame = envelope("query.received").encode().decode()
        self.hear(
            JournalDeliver(
                consumer="critic", instance=instance, number=number, attempt=attempt, after=after, frame=frame
            )
        )

    def hear(self, message: Message) -> None:
        self.heard[message.routing_key](envelope(message.routing_key, message.encode()))

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
async def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    monkeypatch.setattr(journal_consumer, "WORKING_SECONDS", 0.001)
    monkeypatch.setattr(journal_consumer, "ATTACH_SECONDS", 0.001)
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


async def test_what_is_meant_for_another_process_is_not_passed_on(process: Process) -> None:
    process.deliver(7, instance="another")
    assert process.given == []


async def test_what_is_done_and_comes_again_is_acknowledged_again(process: Process) -> None:
    process.deliver(7)
    process.consumer.acknowledge(7)
    await process.says(JournalAck)
    process.deliver(7, 2)
    assert process.said(JournalAck) == [JournalAck(consumer="critic", numbers=(7,))] * 2
    assert process.numbers == [7]


async def test_what_is_released_is_not_acknowledged_and_taken_again(process: Process) -> None:
    process.deliver(7)
    process.consumer.release(7)
    process.deliver(7, 2)
    assert process.numbers == [7, 7]
    assert process.said(JournalAck) == []


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
    fenced(envelope("", JournalFenced(consumer="critic", instance="here").encode()))
    await process.consumer.close()
    assert process.replaced == 1
    assert process.heard == {}
    assert process.said(JournalDetach) == []


async def test_closed_it_says_goodbye_once_and_hears_nothing_more(process: Process) -> None:
    process.consumer.start()
    await process.consumer.close()
    await process.consumer.close()
    assert process.posted[-1] == JournalDetach(consumer="critic")
    assert len(process.said(JournalDetach)) == 1
    assert process.heard == {}


async def test_a_delivery_that_cannot_be_read_is_logged_and_the_next_one_passed_on(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    broken = JournalDeliver(consumer="critic", instance="here", number=6, attempt=1, frame="no frame")
    process.hear(broken)
    process.deliver(7)
    assert process.numbers == [7]
    assert "a delivery cannot be read" in caplog.text
    with pytest.raises(MalformedFrame):
        process.heard["journal.fenced.critic"](envelope("", b"{"))


async def test_what_it_has_done_is_remembered_within_bounds(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_consumer, "KEPT_DONE", 10)
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


async def test_it_has_not_caught_up_with_what_takes_longer_or_without_a_journal(process: Process) -> None:
    assert not await process.consumer.caught_up(0.001)
    waiting = asyncio.create_task(process.consumer.caught_up(0.05))
    process.deliver(7)
    hurry = await process.says(JournalFlush, 2)
    process.hear(JournalFlushed(consumer="critic", instance="here", mark=hurry.mark))
    assert not await waiting
