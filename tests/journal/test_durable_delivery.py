"""What the journal promises to publishers, subscribers and durable consumers, all of them on one wire."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from local.bus import sending
from local.bus.envelope import Envelope, Trace, new_id
from local.bus.message import Message
from local.bus.messages import AnswerDialog, BusDead, ParticipantStatus, QueryCancel, QueryReceived
from local.core.errors import HandedBack, JournalFull, NotConfirmed, NotOnRecord, StoreFailed, StoreFull
from local.journal import client as journal_client
from local.journal import writer as journal_writer
from local.journal.client import RecordedBuffer
from local.journal.delivery import DeadLetter
from local.journal.messages import (
    JournalDeadLetters,
    JournalDeadRead,
    JournalDeliver,
    JournalRedeliver,
    JournalRedelivered,
)
from local.journal.writer import DeadLetters
from local.runtime.participant import Participant, Settingless, on
from tests.wires import MemoryWire, ZeroMQWire

Until = Callable[[Callable[[], object]], Awaitable[None]]
SECONDS = 90.0
both_wires = pytest.mark.parametrize("make_wire", [MemoryWire, ZeroMQWire], ids=["memory", "zeromq"])


def query(text: str) -> QueryReceived:
    return QueryReceived(query_id="q", query=text)


def said(text: str) -> AnswerDialog:
    return AnswerDialog(query_id="q", query="", answer=text)


def durable_worker(name: str = "worker", *, concurrency: int = 1, lane_width: int = 1) -> Worker:
    """A process of the durable consumer `name`; the text of a query says what to do about it."""

    class Durable(Worker):
        @on(QueryReceived, durable=name, concurrency=concurrency, lane_width=lane_width)
        async def take(self, message: QueryReceived, envelope: Envelope) -> Message | None:
            return await self.work(message, envelope)

    Durable.name = name
    return Durable()


class Worker(Participant):
    """What it has begun and done, in order."""

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.begun: list[str] = []
        self.done: list[str] = []
        self.gate, self.asked_to_stop = asyncio.Event(), asyncio.Event()
        self._news = asyncio.Condition()

    async def work(self, message: QueryReceived, envelope: Envelope) -> Message | None:
        text = message.query
        await self._note(self.begun, text)
        if text.startswith("wait"):
            await self.gate.wait()
        elif text.startswith("hand back"):
            await self.asked_to_stop.wait()
            raise HandedBack("asked to stop")
        elif text.startswith("no room") and self.begun.count(text) == 1:
            raise StoreFailed("notes.db: the disk is full")
        elif text.startswith("break"):
            raise ZeroDivisionError("oops")
        elif text.startswith("mended") and not self.gate.is_set():
            raise ZeroDivisionError("not mended yet")
        await self._note(self.done, text)
        return None

    def hand_back(self) -> None:
        self.asked_to_stop.set()

    async def has(self, seen: list[str], *texts: str, count: int = 0) -> None:
        """Wait until all of these have been begun or done, and so many."""
        async with asyncio.timeout(SECONDS), self._news:
            await self._news.wait_for(lambda: set(texts) <= set(seen) and len(seen) >= count)

    async def _note(self, where: list[str], text: str) -> None:
        async with self._news:
            where.append(text)
            self._news.notify_all()


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_client, "WORKING_SECONDS", 0.05)
    monkeypatch.setattr(journal_client, "ATTACH_SECONDS", 0.1)
    monkeypatch.setattr(journal_client, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(sending, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(journal_writer, "TICK_SECONDS", 0.02)
    monkeypatch.setattr(journal_writer, "CONFIRM_SECONDS", 0.01)
    monkeypatch.setattr(journal_writer, "RETRY_SECONDS", 0.05)


@pytest.fixture
async def talker(scene: Any) -> AsyncIterator[Any]:
    """With a journal that serves."""
    await scene.journal(ack_wait_seconds=0.2)
    return await scene.bus()


async def acknowledged(scene: Any, consumer: str = "worker") -> set[int]:
    """What a consumer does not need any more, as the file has it; nothing while it is on its way there."""
    try:
        known = await scene.store.consumer(consumer)
    except NotOnRecord:
        return set()
    return {number for number, *_ in scene.rows() if number <= known.floor or number in known.settled}


async def has_acknowledged(scene: Any, *numbers: int) -> None:
    """Wait until a consumer has acknowledged exactly these."""
    async with asyncio.timeout(SECONDS):
        while await acknowledged(scene) != set(numbers):  # noqa: ASYNC110 a file sets no event
            await asyncio.sleep(0.005)


# Confirmed messages


@both_wires
async def test_a_confirmed_message_is_on_the_disk_when_publish_returns(scene: Any, talker: Any) -> None:
    for text in ("one", "two", "three"):
        envelope = await talker.publish(query(text))
        assert scene.rows()[-1][1:] == ("query.received", envelope.id)


@both_wires
async def test_what_an_absent_journal_has_not_confirmed_goes_again_until_it_is_back_and_gets_one_number(
    scene: Any,
) -> None:
    heard = await scene.hears("query.received")
    publishing = asyncio.create_task((await scene.bus()).publish(query("one")))
    copies = [await asyncio.wait_for(heard.get(), SECONDS) for _ in range(3)]
    assert not publishing.done()
    await scene.journal()
    envelope = await asyncio.wait_for(publishing, SECONDS)
    assert {copy.id for copy in copies} == {envelope.id}
    assert scene.rows() == [(1, "query.received", envelope.id)]


async def test_a_journal_that_is_away_too_long_is_an_error_that_names_subject_and_seconds(scene: Any) -> None:
    with pytest.raises(NotConfirmed) as raised:
        await (await scene.bus()).publish(query("one"), seconds=0.2)
    assert (raised.value.subject, raised.value.seconds) == ("query.received", 0.2)
    assert str(raised.value).startswith("the journal did not confirm the message query.received within 0.2 s; ")


@both_wires
async def test_a_confirmed_message_that_finds_no_connection_goes_as_soon_as_there_is_one(
    scene: Any, talker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_client, "FIRST_PAUSE", 1000.0)
    scene.wire.down()
    publishing = asyncio.create_task(talker.publish(query("one")))
    await asyncio.sleep(0)
    scene.wire.up()
    assert (await asyncio.wait_for(publishing, SECONDS)).id in scene.ids()


@pytest.mark.parametrize("subject", ["query.received", "journal.confirmed."])
async def test_a_lost_message_or_confirmation_is_made_good(scene: Any, talker: Any, subject: str) -> None:
    lost = scene.lose_next(subject)
    envelope = await talker.publish(query("one"))
    assert lost.is_set()
    assert scene.rows() == [(1, "query.received", envelope.id)]


async def test_the_same_id_published_again_has_one_number(scene: Any, talker: Any) -> None:
    for sender in (talker, talker, await scene.bus("other")):
        await sender.publish(query("one"), envelope_id="query-one")
    assert scene.ids() == ["query-one"]


async def test_live_subscribers_get_what_is_sent_again_once(scene: Any, until: Until) -> None:
    heard = await scene.hears("query.received", repeats=False)
    repeats = await scene.hears("query.received")
    talker = await scene.bus()
    publishing = asyncio.create_task(talker.publish(query("one")))
    for _ in range(3):
        await asyncio.wait_for(repeats.get(), SECONDS)
    await scene.journal()
    await publishing
    await talker.publish(query("two"))
    texts = [QueryReceived.decode((await asyncio.wait_for(heard.get(), SECONDS)).payload).query for _ in range(2)]
    assert texts == ["one", "two"]


# A full disk


async def test_a_full_disk_refuses_new_queries_and_everything_else_waits_for_room(
    scene: Any, talker: Any, until: Until
) -> None:
    beats = await scene.hears("participant.status")
    await scene.disk_is_full()
    with pytest.raises(JournalFull, match=r"journal\.db: the disk is full"):
        while True:  # what is left of the last page is filled first
            await talker.publish(query("x" * 3000))
    cancelling = asyncio.create_task(talker.publish(QueryCancel(query_id="q" * 3000)))
    talker.post(said("a" * 3000))
    while not (problem := ParticipantStatus.decode((await beats.get()).payload).details.get("problem")):
        pass
    assert problem.endswith("the disk is full; free some space and try again")
    assert not cancelling.done()
    await scene.disk_has_room()
    cancel = await asyncio.wait_for(cancelling, SECONDS)
    await until(lambda: "answer.dialog" in [subject for _, subject, _ in scene.rows()])
    assert cancel.id in scene.ids()
    assert (await talker.publish(query("now"))).id in scene.ids()
    while ParticipantStatus.decode((await beats.get()).payload).details:
        pass


async def test_what_was_acknowledged_while_the_disk_was_full_is_stored_when_there_is_room(
    scene: Any, talker: Any, until: Until
) -> None:
    worker = durable_worker(concurrency=2)
    await scene.serve(worker)
    await talker.publish(query("wait"))
    await worker.has(worker.begun, "wait")
    await scene.disk_is_full()
    with pytest.raises(JournalFull):
        while True:
            await talker.publish(query("x" * 3000))
    worker.gate.set()
    await worker.has(worker.done, "wait")
    await scene.disk_has_room()
    await talker.publish(query("last"))
    await worker.has(worker.done, "last")
    await has_acknowledged(scene, *(number for number, *_ in scene.rows()))
    assert worker.done.count("wait") == 1


# Recorded messages


@both_wires
async def test_recorded_messages_wait_for_nobody_and_survive_an_absent_journal(scene: Any, until: Until) -> None:
    talker = await scene.bus()
    sent = [(await talker.publish(said(str(number)))).id for number in range(5)]
    journal = await scene.journal()
    await until(lambda: len(scene.rows()) == 5)
    await journal.kill()
    sent += [(await talker.publish(said(str(number)))).id for number in range(5)]
    await scene.journal()
    await until(lambda: len(scene.rows()) == 10)
    assert scene.ids() == sent
    await until(lambda: not len(talker._durability._recorded))


async def test_what_the_publishers_buffer_has_no_room_for_is_a_gap(
    scene: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_client, "RecordedBuffer", lambda *told: RecordedBuffer(*told[:2], max_count=3))
    talker = await scene.bus()
    for number in range(5):
        await talker.publish(said(str(number)))
    await until(lambda: talker.counters["missed"])
    (gap,) = talker.take_gaps()
    assert (gap.instance, gap.missed_subject, gap.missed) == (talker.instance, "answer.dialog", 2)
    await scene.journal()
    await until(lambda: len(scene.rows()) == 3 and not len(talker._durability._recorded))


# Durable consumers


@both_wires
async def test_a_durable_handler_gets_what_is_committed_and_never_the_live_copy(scene: Any, talker: Any) -> None:
    delivered = await scene.hears("journal.deliver.worker")
    worker = durable_worker()
    await scene.serve(worker)
    lost = scene.lose_next("journal.deliver.")
    await talker.publish(query("one"))
    await asyncio.wait_for(lost.wait(), SECONDS)
    await worker.has(worker.done, "one")
    delivery = JournalDeliver.decode((await asyncio.wait_for(delivered.get(), SECONDS)).payload)
    assert (delivery.number, delivery.attempt) == (1, 2)
    assert worker.begun == ["one"]


async def test_a_message_is_acknowledged_when_its_handler_has_returned(scene: Any, talker: Any, until: Until) -> None:
    worker = durable_worker(concurrency=2)
    await scene.serve(worker)
    await talker.publish(query("wait"))
    await talker.publish(query("go"))
    await worker.has(worker.done, "go")
    await has_acknowledged(scene, 2)
    worker.gate.set()
    await has_acknowledged(scene, 1, 2)
    assert worker.begun == ["wait", "go"]


@pytest.mark.parametrize("size", [1, 100_000])
async def test_a_consumer_that_asks_for_it_is_given_what_was_said_before_without_delay(
    scene: Any, talker: Any, size: int
) -> None:
    worker = durable_worker()
    type(worker).linger_ms = 500
    await scene.serve(worker)
    for number in range(3):
        await talker.publish(query("go" * size + str(number)))
        assert await worker.caught_up(SECONDS)
        assert len(worker.done) == number + 1
    await talker.publish(query("wait"))
    assert not await worker.caught_up(0.05)
    worker.gate.set()
    assert await worker.caught_up(SECONDS)
    assert worker.done[-1] == "wait"


async def test_sessions_go_side_by_side_and_each_in_order(scene: Any, talker: Any) -> None:
    worker = durable_worker(concurrency=4)
    await scene.serve(worker)
    for text, session in (("wait 1", "a"), ("a 2", "a"), ("a 3", "a"), ("b 1", "b"), ("b 2", "b")):
        await talker.publish(query(text), Trace(text, None, session))
    await worker.has(worker.done, "b 2")
    assert worker.begun == ["wait 1", "b 1", "b 2"]
    worker.gate.set()
    await worker.has(worker.done, "a 3")
    assert worker.done[-3:] == ["wait 1", "a 2", "a 3"]


async def test_what_a_killed_process_had_in_flight_its_successor_gets_at_once(scene: Any) -> None:
    await scene.journal(ack_wait_seconds=1000)
    talker, first, second = await scene.bus(), durable_worker(), durable_worker()
    process = await scene.serve(first)
    await talker.publish(query("done"))
    await has_acknowledged(scene, 1)
    await talker.publish(query("wait"))
    await first.has(first.begun, "wait")
    await process.kill()
    second.gate.set()
    await scene.serve(second)
    await second.has(second.done, "wait")
    assert second.begun == ["wait"]


async def test_a_message_that_is_worked_on_is_not_given_again(scene: Any, until: Until) -> None:
    journal = await scene.journal(ack_wait_seconds=1000)
    talker, worker = await scene.bus(), durable_worker()
    await scene.serve(worker)
    await talker.publish(query("wait"))
    await worker.has(worker.begun, "wait")
    consumer = journal.participant._writer._core.consumer("worker")
    due = consumer.next_due
    await until(lambda: consumer.next_due > due)  # the worker has said that it works on it
    worker.gate.set()
    await worker.has(worker.done, "wait")


async def test_what_cannot_be_done_now_is_given_again(scene: Any, talker: Any) -> None:
    worker = durable_worker()
    served = await scene.serve(worker)
    await talker.publish(query("no room"), Trace("q", None, "s"))
    await talker.publish(query("behind it"), Trace("q", None, "s"))
    await worker.has(worker.done, "no room", "behind it")
    assert worker.begun == ["no room", "no room", "behind it"]
    await served.stop()
    assert "bus.dead" not in [subject for _, subject, _ in scene.rows()]


async def test_what_breaks_its_handler_is_a_dead_letter_and_no_more_work(scene: Any, until: Until) -> None:
    dead = await scene.hears("bus.dead")
    await scene.journal(max_failures=1)
    talker, worker = await scene.bus(), durable_worker()
    await scene.serve(worker)
    envelope = await talker.publish(query("break"), Trace("q", None, "s"))
    await talker.publish(query("behind it"), Trace("q", None, "s"))
    await worker.has(worker.done, "behind it")
    letter = BusDead.decode((await asyncio.wait_for(dead.get(), SECONDS)).payload)
    assert (letter.participant, letter.envelope_id) == ("worker", envelope.id)
    assert re.fullmatch(r"failed 1 times: ZeroDivisionError at tests/\S+\.py:\d+", letter.error.message)
    assert worker.begun == ["break", "behind it"]
    await until(lambda: len(scene.rows()) == 3)
    await has_acknowledged(scene, 1, 2, 3)


async def test_a_dead_letter_on_a_full_disk_is_told_of_once_there_is_room(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, journal = await scene.hears("bus.dead"), await scene.journal(max_failures=1)
    monkeypatch.setattr(journal_writer, "RETRY_SECONDS", 0.01)
    tell, told = DeadLetters.dead_notice, []

    async def finds_no_room_at_first(self: DeadLetters, letter: DeadLetter) -> Envelope:
        told.append(letter)
        if len(told) == 1:
            raise StoreFull("journal.db: the disk is full")
        return await tell(self, letter)

    monkeypatch.setattr(DeadLetters, "dead_notice", finds_no_room_at_first)
    talker, worker = await scene.bus(), durable_worker()
    await scene.serve(worker)
    envelope = await talker.publish(query("break"), Trace("q", None, "s"))
    letter = BusDead.decode((await asyncio.wait_for(dead.get(), SECONDS)).payload)
    assert letter.envelope_id == envelope.id
    assert told[0] == told[1]
    assert not journal.task.done()


async def test_what_breaks_its_handler_is_given_again_and_done_when_that_is_mended(scene: Any) -> None:
    dead = await scene.hears("bus.dead")
    await scene.journal(ack_wait_seconds=0.05, max_failures=10**6)
    talker, worker = await scene.bus(), durable_worker()
    await scene.serve(worker)
    await talker.publish(query("mended break"), Trace("q", None, "s"))
    await talker.publish(query("behind it"), Trace("q", None, "s"))
    await talker.publish(query("beside it"), Trace("r", None, "other"))
    await worker.has(worker.done, "beside it")
    await worker.has(worker.begun, "mended break", count=3)
    worker.gate.set()
    await worker.has(worker.done, "mended break", "behind it", "beside it")
    assert worker.done == ["beside it", "mended break", "behind it"]
    assert dead.empty()


async def test_a_dead_letter_is_given_again_when_that_is_asked_for_and_once_whoever_dies(scene: Any) -> None:
    journal = await scene.journal(max_failures=1)
    talker, worker, dead = await scene.bus(), durable_worker(), await scene.hears("bus.dead")
    process = await scene.serve(worker)
    for text in ("mended break", "behind it"):
        await talker.publish(query(text), Trace("q", None, "s"))
    await asyncio.wait_for(dead.get(), SECONDS)
    await worker.has(worker.done, "behind it")
    worker.gate.set()  # somebody has mended it
    await process.kill()

    async def redeliver(**what: Any) -> JournalRedelivered:
        return await talker.request(JournalRedeliver(**what), JournalRedelivered, SECONDS)

    [letter] = (listed := await talker.request(JournalDeadRead(), JournalDeadLetters, SECONDS)).dead_letters
    assert (letter.number, letter.consumer, letter.dead_subject) == (1, "worker", "query.received")
    assert letter.reason and listed.count == 1
    unknown = await redeliver(consumer="nobody")
    assert unknown.error is not None and "no durable consumer 'nobody' is registered" in unknown.error.message
    assert (await redeliver(numbers=(2, 99))).numbers == {}
    for _ in range(2):  # the second time it is so already
        assert (await redeliver(consumer="worker")).numbers == {"worker": (1,)}
    await journal.kill()
    await scene.journal(max_failures=1)
    heir = durable_worker()
    heir.gate.set()
    await scene.serve(heir)
    await heir.has(heir.done, "mended break")
    await talker.publish(query("later"), Trace("q", None, "s"))
    await heir.has(heir.done, "later")
    again = [text for text in heir.done if text != "behind it"]  # killed before its acknowledgement was out, maybe
    assert again == ["mended break", "later"]
    assert (await redeliver(consumer="worker")).numbers == {}


async def test_what_cannot_be_read_is_counted_and_holds_up_nobody(scene: Any, talker: Any) -> None:
    worker = durable_worker()
    served = await scene.serve(worker)
    for payload in (b'{"query_id": 7}', b"no JSON", b"\xff no text", b'"\xed\xa0\x80"'):
        frame = Envelope("query.received", new_id(), "stranger", "other", 1, "q", payload, session_id="s").encode()
        await scene.wire.inject([frame])
    await talker.publish(query("behind it"), Trace("q", None, "s"))
    await worker.has(worker.done, "behind it")
    assert worker.begun == ["behind it"]
    assert served.bus.counters["malformed"] == 2
    assert len(scene.rows()) == 3  # what is no text is refused: on record it could be given to nobody


async def test_an_instance_that_has_been_replaced_ends_and_is_given_nothing(scene: Any, talker: Any) -> None:
    old, new = durable_worker(), durable_worker()
    first = await scene.serve(old)
    await talker.publish(query("one"))
    await old.has(old.done, "one")
    await scene.serve(new)
    await asyncio.wait_for(first.task, SECONDS)
    await talker.publish(query("two"))
    await new.has(new.done, "two")
    assert (old.done, new.done) == (["one"], ["two"])


async def test_a_process_that_says_goodbye_hands_back_without_a_death(scene: Any) -> None:
    await scene.journal(ack_wait_seconds=1000, max_deliver=1)
    talker, old, new = await scene.bus(), durable_worker(), durable_worker()
    for _ in range(5):
        served = await scene.serve(old)
        if not old.begun:
            await talker.publish(query("hand back"))
        await old.has(old.begun, "hand back")
        await served.stop()
        old = durable_worker()
    new.asked_to_stop.set()
    assert (await scene.store.consumer("worker")).deaths == {}
    assert await acknowledged(scene) == set()


async def test_a_message_that_kills_again_and_again_is_given_up_and_others_are_done(scene: Any) -> None:
    await scene.journal(ack_wait_seconds=1000, max_deliver=1)
    talker, dead = await scene.bus(), await scene.hears("bus.dead")
    poison = await talker.publish(query("wait"), Trace("q", None, "s"))
    await talker.publish(query("behind it"), Trace("q", None, "s"))
    for _ in range(3):  # two deaths make it a suspect, the third it dies alone
        worker = durable_worker()
        process = await scene.serve(worker)
        await worker.has(worker.begun, "wait")
        await process.kill()
    survivor = durable_worker()
    await scene.serve(survivor)
    await survivor.has(survivor.done, "behind it")
    heard = await asyncio.wait_for(dead.get(), SECONDS)
    letter = BusDead.decode(heard.payload)
    assert (letter.participant, letter.envelope_id, letter.dead_subject) == ("worker", poison.id, "query.received")
    assert (letter.error.kind, heard.correlation_id, heard.session_id) == ("gave_up", "q", "s")
    assert survivor.begun == ["behind it"]
    assert heard.id in scene.ids()


async def test_a_consumer_that_comes_late_gets_everything_from_the_start_in_order(scene: Any, talker: Any) -> None:
    texts = [f"query {number}" for number in range(10)]
    for text in texts:
        await talker.publish(query(text), Trace("q", None, "s"))
    late = durable_worker()
    await scene.serve(late)
    await late.has(late.done, texts[-1])
    assert late.done == texts


@both_wires
async def test_whenever_the_journal_is_killed_everything_is_on_record_once_and_done(scene: Any, until: Until) -> None:
    worker, journal = durable_worker(concurrency=8), await scene.journal()
    await scene.serve(worker)
    talker = await scene.bus()
    texts = [f"{publisher} {number}" for publisher in range(3) for number in range(15)]

    async def talk(publisher: int) -> None:
        for number in range(15):
            await talker.publish(query(f"{publisher} {number}"), Trace("q", None, str(publisher)))
            talker.post(said(f"{publisher} {number}"))

    talking = [asyncio.create_task(talk(publisher)) for publisher in range(3)]
    for count in (8, 25):
        await worker.has(worker.done, count=count)
        await journal.kill()
        journal = await scene.journal()
    await asyncio.gather(*talking)
    await worker.has(worker.done, *texts)
    assert sorted(worker.done) == sorted(texts)
    for publisher in "012":  # each session in order
        mine = [text for text in worker.begun if text.startswith(publisher)]
        assert mine == [text for text in texts if text.startswith(publisher)]
    await until(lambda: len(scene.rows()) >= 2 * len(texts))
    assert len(scene.ids()) == len(set(scene.ids())) == 2 * len(texts)


@pytest.mark.parametrize("subject", ["journal.deliver.", "journal.ack", "journal.attach"])
async def test_a_lost_delivery_acknowledgement_or_attachment_is_made_good(
    scene: Any, talker: Any, subject: str
) -> None:
    lost = scene.lose_next(subject)
    worker = durable_worker()
    await scene.serve(worker)
    await talker.publish(query("one"))
    await worker.has(worker.done, "one")
    await asyncio.wait_for(lost.wait(), SECONDS)
    await has_acknowledged(scene, 1)
    assert worker.begun == ["one"]


@pytest.mark.parametrize("size", [40_000, 1_000_000])
async def test_a_message_up_to_the_limit_of_a_frame_is_delivered_whole(scene: Any, talker: Any, size: int) -> None:
    worker = durable_worker()
    await scene.serve(worker)
    text = '"' * (size // 4) + "x" * (size // 2)
    payload = query(text).encode()
    await scene.wire.inject([Envelope("query.received", "large", "stranger", "other", 1, "q", payload).encode()])
    await talker.publish(query(text + "packed"))
    await worker.has(worker.done, text, text + "packed")


async def test_what_is_on_record_does_not_expire(scene: Any, talker: Any) -> None:
    worker = durable_worker()
    await scene.serve(worker)
    await talker.publish(query("wait"))
    await worker.has(worker.begun, "wait")
    await talker.publish(query("short-lived"), ttl_ms=0)
    worker.gate.set()
    await worker.has(worker.done, "short-lived")
