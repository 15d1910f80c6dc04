"""The journal participant: its life, what it answers, what it deletes, and messages that make no sense."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, decode
from local.bus.message import Message
from local.bus.messages import (
    AnswerDialog,
    ConversationResult,
    ParticipantStatus,
    QueryAccepted,
    QueryCancel,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
)
from local.bus.receiving import RejectLog
from local.bus.security import Declaration, SenderGuard
from local.bus.zeromq import MemoryHub
from local.core.errors import JournalFull, NoJournal, PublishTimeout, StoreFailed, StoreFull
from local.journal import server
from local.journal import writer as writer_module
from local.journal.client import JournalClient
from local.journal.delivery import Deliver, Settled
from local.journal.messages import (
    ConsumerClaim,
    JournalAck,
    JournalAttach,
    JournalDeliver,
    JournalDetach,
    JournalEntries,
    JournalEntry,
    JournalFailed,
    JournalFlush,
    JournalRead,
    JournalRedact,
    JournalRedacted,
    JournalWorking,
)
from local.journal.recovery import suspicion_path
from local.journal.replicated import ReplicatedJournalStore
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.journal.writer import JournalDeliveries
from local.memory.messages import MemoryDeleted
from local.runtime.participant import Participant, Settingless, on
from local.runtime.runner import ParticipantRunner
from tests.logs import LOG, ONE_MACHINE, OpenStore, make_open_store

SECONDS = 90.0
Frame = Callable[..., bytes]

# From its start to its end


class Reader(Participant):
    """A durable consumer."""

    name = "reader"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.got: asyncio.Queue[str] = asyncio.Queue()

    @on(QueryReceived, durable="reader")
    async def take(self, message: QueryReceived, envelope: Any) -> None:
        self.got.put_nowait(message.query)


async def status_of(beats: asyncio.Queue[Any]) -> ParticipantStatus:
    while (status := ParticipantStatus.decode((await beats.get()).payload)).name != "journal":
        pass
    return status


@pytest.fixture(params=[ONE_MACHINE, LOG])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return make_open_store(request.param)


async def test_its_status_says_how_much_was_committed_and_nothing_when_nothing_is_wrong(scene: Any) -> None:
    beats = await scene.hears("participant.status")
    await scene.journal()
    talker = await scene.bus()
    for number in range(3):
        await talker.publish(QueryCancel(query_id=f"q{number}"), envelope_id=f"id {number // 2}")
    while (status := await status_of(beats)).counters.get("committed") != 2:  # one id came twice
        pass
    assert status.counters["commits"] >= 2
    assert status.details == {}


async def test_that_a_query_was_taken_up_is_committed_with_what_comes_next(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "GROUP_COMMIT_SECONDS", SECONDS)
    live = await scene.hears("query.accepted")
    await scene.journal()
    talker = await scene.bus()
    telling = asyncio.create_task(talker.publish(QueryAccepted(query_id="q")))
    await live.get()
    await talker.request(JournalRead(), JournalEntries, SECONDS)  # if the journal hurried, it would have by now
    assert not scene.rows()
    await talker.publish(QueryCancel(query_id="q"))
    await telling
    assert [subject for _, subject, _ in scene.rows()] == ["query.accepted", "query.cancel"]


@pytest.mark.parametrize("open_store", [ONE_MACHINE], indirect=True)  # a log makes the file again
async def test_damage_that_was_found_at_the_start_is_in_its_status_and_in_the_log(
    scene: Any, caplog: pytest.LogCaptureFixture
) -> None:
    journal, talker = await scene.journal(), await scene.bus()
    await talker.publish(QueryCancel(query_id="q"))
    await journal.stop()
    scene.file.unlink()
    beats = await scene.hears("participant.status")
    await scene.journal()
    problem = (await status_of(beats)).details["problem"]
    assert problem == str(scene.store.damage)
    assert problem in caplog.text


async def test_what_is_too_old_and_needed_by_nobody_is_removed(
    scene: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HOUSEKEEPING_SECONDS", 0.01)
    await scene.journal(max_age_days=1e-9)
    talker = await scene.bus()
    await talker.publish(QueryCancel(query_id="q"))
    await until(lambda: not scene.rows())


async def test_a_disk_in_trouble_at_its_first_look_does_not_end_it(
    scene: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    async def verify(self: JournalStore) -> None:
        looks.append(self)
        if len(looks) == 1:
            raise StoreFull("journal.db: the disk is full")

    monkeypatch.setattr(JournalStore, "verify", verify)
    monkeypatch.setattr(server, "HOUSEKEEPING_SECONDS", 0.01)
    journal = await scene.journal()
    await until(lambda: len(looks) == 2 or journal.task.done())
    assert not journal.task.done()


async def test_damage_that_is_found_while_it_runs_ends_it_and_the_next_start_looks_at_everything(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def verify(self: JournalStore) -> str:
        return "row 7 of entries does not match its checksum"

    journal, talker = await scene.journal(), await scene.bus()
    await talker.publish(QueryCancel(query_id="q"))
    await journal.stop()
    with monkeypatch.context() as patch:
        patch.setattr(JournalStore, "verify", verify)
        journal = await scene.journal()
        await asyncio.wait({journal.task}, timeout=SECONDS)
    error = journal.task.exception()
    assert "row 7 of entries" in repr(error)
    assert suspicion_path(scene.file).exists()
    await scene.journal()
    assert scene.store.damage is None  # a look at everything has found nothing
    assert not suspicion_path(scene.file).exists()


async def test_a_disk_that_fails_ends_it_and_nothing_is_lost(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(self: JournalStore, *args: Any) -> None:
        raise StoreFailed("journal.db: disk I/O error")

    journal, talker, reader = await scene.journal(), await scene.bus(), Reader()
    await scene.serve(reader)
    with monkeypatch.context() as patch:
        patch.setattr(JournalStore, "commit", fails)
        publishing = asyncio.create_task(talker.publish(QueryReceived(query_id="q", query="one")))
        await asyncio.wait({journal.task}, timeout=SECONDS)
    assert "disk I/O error" in repr(journal.task.exception())
    await scene.journal()
    await publishing
    assert await asyncio.wait_for(reader.got.get(), SECONDS) == "one"


@pytest.mark.parametrize("open_store", [LOG], indirect=True)
async def test_a_query_that_may_be_in_the_log_is_confirmed_when_that_is_known(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.05)
    await scene.journal()
    talker, reader, log = await scene.bus(), Reader(), scene.store._log
    await scene.serve(reader)
    log.loses_answers = True
    publishing = asyncio.create_task(talker.publish(QueryReceived(query_id="q", query="one")))
    await log.has_lost_an_answer.wait()
    log.loses_answers = False
    await asyncio.wait_for(publishing, SECONDS)
    assert await asyncio.wait_for(reader.got.get(), SECONDS) == "one"
    assert len(scene.ids()) == 1


@pytest.mark.parametrize("open_store", [LOG], indirect=True)
async def test_a_journal_whose_log_was_taken_over_confirms_nothing_and_ends(scene: Any, tmp_path: Path) -> None:
    journal, talker = await scene.journal(), await scene.bus()
    async with ReplicatedJournalStore(tmp_path / "other" / "journal.db", scene.store._log) as owner:
        publishing = asyncio.create_task(talker.publish(QueryReceived(query_id="q", query="one")))
        await asyncio.wait({journal.task}, timeout=SECONDS)
        assert "another owner's" in repr(journal.task.exception())
        assert not publishing.done()
        assert await owner.read(limit=9) == []
    publishing.cancel()


async def test_a_disk_that_fails_once_takes_no_acknowledgement_along(
    scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, talker, reader = await scene.journal(), await scene.bus(), Reader()
    await scene.serve(reader)
    await talker.publish(QueryReceived(query_id="q", query="one"))
    await reader.got.get()
    writer = journal.participant._writer
    await writer.catch_up()
    commit, failed = JournalStore.commit, []

    async def fails_once(self: JournalStore, entries: Any, changes: Any) -> Any:
        if changes and not failed:
            failed.append(changes)
            raise StoreFailed("journal.db: disk I/O error")
        return await commit(self, entries, changes)

    monkeypatch.setattr(JournalStore, "commit", fails_once)
    writer._queue.note(Settled("reader", 1))
    writer._queue.add(Envelope("query.cancel", "late", "you", "there", 1, "q", b"{}"))
    with pytest.raises(StoreFailed):
        await writer.catch_up()  # as when a session is deleted
    await writer.finish()
    assert (await scene.store.consumer("reader")).floor == 1


async def test_an_orderly_end_stores_what_has_just_been_heard(scene: Any) -> None:
    journal, reader = await scene.journal(), Reader()
    talker, served = await scene.bus(), await scene.serve(reader)
    await talker.publish(QueryReceived(query_id="q", query="one"))
    await reader.got.get()
    goodbyes = await scene.hears("journal.detach")
    stopping = asyncio.create_task(served.stop())
    await goodbyes.get()
    await journal.stop()
    await stopping
    async with scene.open_store(scene.file) as store:
        known = await store.consumer("reader")
    assert (known.served_by, known.fenced) == (None, (served.bus.instance,))
    assert known.floor == 1


async def test_where_there_is_no_journal_a_durable_consumer_is_refused(scene: Any) -> None:
    bus = await scene.bus(journaled=False)
    with pytest.raises(NoJournal, match="reader"):
        bus.consume("reader", ["query.received"], lambda delivered: None, lambda: None)


async def test_a_full_disk_at_the_first_start_of_a_consumer_makes_it_wait(scene: Any, until: Any) -> None:
    await scene.journal()
    talker, reader = await scene.bus(), Reader()
    await scene.disk_is_full()
    with pytest.raises(JournalFull):
        while True:
            await talker.publish(QueryReceived(query_id="q", query="x" * 3000))
    await scene.serve(reader)
    await scene.disk_has_room()
    await talker.publish(QueryReceived(query_id="q", query="last"))
    async with asyncio.timeout(SECONDS):
        while await reader.got.get() != "last":
            pass


# Deliveries from the disk


class SlowStore:
    """A store that reads once `is_free` is set."""

    def __init__(self) -> None:
        self.read_numbers: list[int] = []
        self.failures: list[Exception] = []
        self.is_asked, self.is_free = asyncio.Event(), asyncio.Event()

    async def read(self, *, limit: int, after: int) -> list[Any]:
        self.read_numbers.append(after + 1)
        self.is_asked.set()
        await self.is_free.wait()
        if self.failures:
            raise self.failures.pop()
        frame = Envelope("query.received", f"e{after + 1}", "api", "i", 1, "q", b"{}").encode()
        return [SimpleNamespace(number=after + 1, redacted=False, entry=SimpleNamespace(frame=frame))]


class Listener:
    """A bus that keeps what is published on it."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[JournalDeliver] = asyncio.Queue()
        self.failures: list[Exception] = []

    async def publish(self, message: JournalDeliver) -> None:
        if self.failures:
            raise self.failures.pop()
        self.given.put_nowait(message)


def delivery(number: int, attempt: int) -> Deliver:
    return Deliver("generator", number, attempt, "i", 0, 0.0)


async def test_a_delivery_that_waits_for_the_disk_waits_once_and_only_while_it_is_needed() -> None:
    store, bus = SlowStore(), Listener()
    parts: tuple[Any, Any] = (bus, store)
    deliveries = JournalDeliveries(*parts, lambda _: None)
    running = asyncio.create_task(deliveries.run())
    deliveries.deliver(delivery(1, 1), None)
    await store.is_asked.wait()
    for attempt in (1, 2, 3):  # nothing is heard of them for long
        for number in (2, 3, 4):
            deliveries.deliver(delivery(number, attempt), None)
    deliveries.deliver(delivery(5, 1), b"at hand, but not before those that were given earlier")
    deliveries.settled("generator", 3)
    store.is_free.set()
    given = [await asyncio.wait_for(bus.given.get(), 90) for _ in range(4)]
    assert [(each.number, each.attempt) for each in given] == [(1, 1), (2, 3), (4, 3), (5, 1)]
    assert store.read_numbers == [1, 2, 4, 5]
    running.cancel()


@pytest.mark.parametrize("trouble", [StoreFull("the disk is full"), PublishTimeout("journal.deliver.x", 5.0)], ids=str)
async def test_a_delivery_from_the_disk_that_fails_is_made_when_it_is_due_again(trouble: Exception) -> None:
    store, bus = SlowStore(), Listener()
    parts: tuple[Any, Any] = (bus, store)
    deliveries = JournalDeliveries(*parts, lambda _: None)
    running = asyncio.create_task(deliveries.run())
    (bus if isinstance(trouble, PublishTimeout) else store).failures.append(trouble)
    store.is_free.set()
    deliveries.deliver(delivery(1, 1), None)
    deliveries.deliver(delivery(2, 1), None)
    assert (await asyncio.wait_for(bus.given.get(), 90)).number == 2
    deliveries.deliver(delivery(1, 2), None)
    assert (await asyncio.wait_for(bus.given.get(), 90)).number == 1
    assert not running.done()
    running.cancel()


# Reading and deleting


@pytest.fixture
async def talker(scene: Any, journal: Any) -> Any:
    return await scene.bus()


async def page_of(bus: Any, **wanted: Any) -> JournalEntries:
    entries: JournalEntries = await bus.request(JournalRead(**wanted), JournalEntries, SECONDS)
    assert entries.error is None
    return entries


async def read_on(bus: Any, **wanted: Any) -> list[JournalEntry]:
    """Everything, answer by answer."""
    found: list[JournalEntry] = []
    while True:
        entries = await page_of(bus, after=found[-1].number if found else 0, **wanted)
        found += entries.entries
        if not entries.more:
            return found


async def test_what_is_on_record_is_told_page_by_page_as_it_was_on_the_wire(talker: Any) -> None:
    sent = [await talker.publish(QueryCancel(query_id=f"q{number}")) for number in range(60)]
    first = await page_of(talker, limit=25)
    assert [entry.number for entry in first.entries] == list(range(1, 26))
    assert first.more
    last = await page_of(talker, limit=25, after=50)
    assert [entry.number for entry in last.entries] == list(range(51, 61))
    assert not last.more
    back = await page_of(talker, limit=25, before=61)  # more than the journal reads at once
    assert [entry.number for entry in back.entries] == list(range(60, 35, -1))
    assert [decode(entry.frame.encode()) for entry in await read_on(talker, limit=7)] == sent


async def test_subjects_families_session_and_correlation_narrow_it_down(talker: Any) -> None:
    for session in ("s", "t"):
        for query_id in (f"{session}1", f"{session}2"):
            trace = Trace(query_id, None, session)
            await talker.publish(QueryReceived(query_id=query_id, query=""), trace)
            await talker.publish(QueryCancel(query_id=query_id), trace)
    numbers = {
        ("query.cancel",): [2, 4, 6, 8],
        ("query.",): [1, 2, 3, 4, 5, 6, 7, 8],
        ("query.received", "answer."): [1, 3, 5, 7],
        ("answer.",): [],
    }
    for subjects, expected in numbers.items():
        assert [entry.number for entry in (await page_of(talker, subjects=subjects)).entries] == expected
    wanted = {"session_id": "t", "subjects": ("query.cancel",)}
    assert [entry.number for entry in (await page_of(talker, **wanted)).entries] == [6, 8]
    assert [entry.number for entry in (await page_of(talker, correlation_id="s2")).entries] == [3, 4]


async def test_an_answer_is_bounded_and_says_that_there_is_more(talker: Any) -> None:
    for number in range(12):
        await talker.publish(QueryReceived(query_id=f"q{number}", query="x" * 9000))
    entries = await page_of(talker, limit=1000)
    assert entries.more
    assert sum(len(entry.frame) for entry in entries.entries) <= server.READ_BYTES
    assert [entry.number for entry in await read_on(talker, limit=1000)] == list(range(1, 13))


async def test_a_message_larger_than_an_answer_comes_alone_and_whole(talker: Any, scene: Any) -> None:
    large = QueryReceived(query_id="q", query="x" * (server.READ_BYTES + 1))
    await talker.publish(large)
    await talker.publish(QueryCancel(query_id="q"))
    first, second = await read_on(talker)
    assert QueryReceived.decode(decode(first.frame.encode()).payload) == large
    assert second.number == 2


async def test_what_is_deleted_is_gone_from_answers_and_file_and_its_headers_stay(talker: Any, scene: Any) -> None:
    for session in ("private", "public"):
        await talker.publish(QueryReceived(query_id=session, query=f"my {session} thoughts"), Trace("q", None, session))
    redacted = await talker.request(JournalRedact(session_id="private"), JournalRedacted, SECONDS)
    assert redacted == JournalRedacted(count=1)
    private, public = (await page_of(talker)).entries
    assert private.redacted and not public.redacted
    envelope = decode(private.frame.encode())
    assert (envelope.subject, envelope.session_id, envelope.payload) == ("query.received", "private", b"")
    stored = b"".join(file.read_bytes() for file in scene.directory.glob("journal.db*"))
    assert b"public thoughts" in stored
    assert b"private thoughts" not in stored
    again = await talker.request(JournalRedact(session_id="private"), JournalRedacted, SECONDS)
    assert again.count == 0


async def test_what_was_deleted_before_it_was_handled_is_given_to_nobody(talker: Any, scene: Any) -> None:
    got: list[str] = []

    class Reader(Participant):
        """Notes what it gets."""

        name = "reader"

        @on(QueryReceived, durable="reader")
        async def take(self, message: QueryReceived, envelope: Any) -> Message | None:
            got.append(message.query_id)
            return AnswerDialog(query_id=message.query_id, query="", answer="")

    for session in ("private", "public"):
        await talker.publish(QueryReceived(query_id=session, query=""), Trace("q", None, session))
    await talker.request(JournalRedact(session_id="private"), JournalRedacted, SECONDS)
    heard = await scene.hears("answer.dialog")
    await scene.serve(Reader(Settingless()))
    await heard.get()
    await talker.publish(QueryReceived(query_id="later", query=""), Trace("q", None, "private"))
    await heard.get()
    assert got == ["public", "later"]


async def test_a_message_on_its_way_to_the_disk_is_deleted_too(talker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "GROUP_COMMIT_SECONDS", SECONDS)
    talker.post(ToolRequest(query_id="q", call_id="c", tool="t", args={}), Trace("q", None, "s"))
    redacted = await talker.request(JournalRedact(session_id="s"), JournalRedacted, SECONDS)
    assert redacted.count == 1


@pytest.mark.parametrize("open_store", [ONE_MACHINE], indirect=True)  # a log makes the file again
async def test_a_row_that_has_changed_is_an_error_in_the_answer_and_makes_the_next_start_look_at_everything(
    talker: Any, scene: Any, journal: Any
) -> None:
    beats = await scene.hears("participant.status")
    await talker.publish(QueryCancel(query_id="q"))
    async with scene.store._reading:  # the look at the start has ended: what comes later is left to whoever reads
        pass
    await scene.store._database.run(lambda db: db.execute("UPDATE entries SET sender = 'forged'").close())
    entries = await talker.request(JournalRead(), JournalEntries, SECONDS)
    assert entries.error is not None
    assert entries.error.kind == "store_damaged"
    while "does not match its checksum" not in str((await beats.get()).payload):
        pass
    await journal.stop()
    await scene.journal()
    assert scene.store.damage is not None
    assert (await page_of(talker)).entries == ()


# Large fields


LARGE = "word " * 20_000
ENGRAM = "0123456789abcdef" * 2
MINUTE = 61.0
NOT_KEPT = ConversationResult(verb="session", value={"text": LARGE})


@asynccontextmanager
async def journaled_bus(folder: Path, **settings: float) -> AsyncIterator[Bus]:
    hub, blobs, rejects = MemoryHub(), BlobStore(folder / "blobs"), RejectLog(folder / "rejected.jsonl")
    journal = Journal(JournalConfig(**settings), JournalStore(folder / "journal.db"), blobs, rejects)
    stop, ready = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(
        ParticipantRunner(journal, Bus("journal", hub.transport(), blobs=blobs)).run(stop, ready.set)
    )
    async with asyncio.timeout(90), Bus("frontend", hub.transport(), blobs=blobs, durability=JournalClient()) as bus:
        await ready.wait()
        await bus.ready()
        yield bus
    stop.set()
    await serving


async def answered(bus: Bus, query_id: str, session_id: str, text: str = LARGE) -> None:
    response = ResponseGeneration(query_id=query_id, status="answered", query="?", answer=text)
    await bus.publish(response, Trace(query_id, None, session_id))


async def redact(bus: Bus, **what: str) -> int:
    answer = await bus.request(JournalRedact.model_validate(what), JournalRedacted, 10)
    assert answer.error is None
    return answer.count


async def subjects_left(bus: Bus) -> list[str]:
    entries = (await bus.request(JournalRead(), JournalEntries, 10)).entries
    return [decode(entry.frame.encode()).subject for entry in entries if not entry.redacted]


def blobs_in(folder: Path) -> list[Path]:
    return [file for file in (folder / "blobs").rglob("*") if file.is_file()]


def left_for(folder: Path, seconds: float) -> None:
    """Make all large fields that much older."""
    for file in blobs_in(folder):
        status = file.stat()
        os.utime(file, (status.st_atime, status.st_mtime - seconds))


async def test_a_large_field_goes_with_the_last_session_that_refers_to_it(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await answered(bus, "q1", "first")
        await answered(bus, "q2", "second")
        assert len(blobs_in(tmp_path)) == 1
        assert await redact(bus, session_id="first") == 1
        assert len(blobs_in(tmp_path)) == 1
        assert await redact(bus, session_id="second") == 1
        assert blobs_in(tmp_path) == []


async def test_a_query_goes_with_all_that_it_caused_and_nothing_else(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        for query_id in ("q1", "q2"):
            await bus.publish(QueryReceived(query_id=query_id, query="?"), Trace(query_id, None, "s"))
            await answered(bus, query_id, "s", f"{query_id} {LARGE}")
        assert await redact(bus, query_id="q1") == 2
        assert await subjects_left(bus) == ["query.received", "response.generation"]
        assert len(blobs_in(tmp_path)) == 1


async def test_what_mentions_a_text_goes_also_where_it_does_so_in_a_large_field(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await answered(bus, "q1", "s", f"of {ENGRAM}")
        await answered(bus, "q2", "s", f"of {ENGRAM} {LARGE}")
        await answered(bus, "q3", "s", LARGE)
        assert await redact(bus, mentioned=ENGRAM) == 2
        assert await subjects_left(bus) == ["response.generation"]
        assert len(blobs_in(tmp_path)) == 1


async def test_the_message_that_says_what_is_deleted_stays_for_those_who_have_not_heard_it(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(MemoryDeleted(engram_id=ENGRAM, query_id="q1"))
        assert await redact(bus, mentioned=ENGRAM) == 0
        assert await subjects_left(bus) == ["memory.deleted"]


async def test_a_large_field_of_what_was_never_on_record_goes_with_the_next_deletion_a_minute_later(
    tmp_path: Path,
) -> None:
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(NOT_KEPT)
        await answered(bus, "q1", "s", f"kept {LARGE}")
        await redact(bus, session_id="nowhere")
        assert len(blobs_in(tmp_path)) == 2
        left_for(tmp_path, MINUTE)
        await redact(bus, session_id="nowhere")
        assert len(blobs_in(tmp_path)) == 1
        assert await subjects_left(bus) == ["response.generation"]


async def test_a_large_field_that_was_never_on_record_does_not_wait_for_another_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "YOUNG_SECONDS", 0.05)
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(NOT_KEPT)  # a page of the conversation, or a prompt
        await redact(bus, session_id="s")
        while blobs_in(tmp_path):  # the journal removes it by itself
            await bus.request(JournalRead(), JournalEntries, 10)


async def test_what_nothing_refers_to_any_more_is_cleared_up_without_a_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HOUSEKEEPING_SECONDS", 0.01)
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(NOT_KEPT)
        left_for(tmp_path, MINUTE)
        while blobs_in(tmp_path):  # the journal keeps house until then
            await bus.request(JournalRead(), JournalEntries, 10)


async def test_large_fields_count_for_the_limit_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with journaled_bus(tmp_path) as bus:
        for number in range(4):
            await answered(bus, f"q{number}", "s", f"{number} {LARGE * 8}")  # 0.8 MB each
    left_for(tmp_path, MINUTE)
    monkeypatch.setattr(server, "HOUSEKEEPING_SECONDS", 0.01)
    async with journaled_bus(tmp_path, max_megabytes=2.0) as bus:
        while len(blobs_in(tmp_path)) > 2:  # the journal keeps house until then
            await bus.request(JournalRead(), JournalEntries, 10)
        assert len(await subjects_left(bus)) == 2
        last = [file.read_text()[1:3] for file in blobs_in(tmp_path)]
    assert sorted(last) == ["2 ", "3 "]


async def test_samples_of_what_nobody_took_go_with_any_deletion(tmp_path: Path) -> None:
    RejectLog(tmp_path / "rejected.jsonl").add("tool", "no JSON", b"my secret")
    async with journaled_bus(tmp_path) as bus:
        await redact(bus, session_id="nowhere")
    assert not (tmp_path / "rejected.jsonl").exists()


# Strangers


SUBJECTS = ["attach", "detach", "ack", "working", "read", "redact", "confirmed.x", "fenced.x", "deliver.x"]
PAYLOADS = [b"", b"null", b"[]", b"{}", b"\xff", b'{"consumer":7}', b"{" * 5000, b'{"attempts":{"a":"b"}}']
SENSELESS: list[Message] = [
    JournalAck(consumer="nobody", numbers=(1, -1, 10**30)),
    JournalWorking(attempts={"nobody": {1: 1}}),
    JournalDetach(consumer="nobody"),
    JournalAttach(consumers=(ConsumerClaim(name="somebody", subjects=("nothing.of.ours",)),)),
]


@pytest.fixture
async def still_works(scene: Any, journal: Any) -> Callable[[], Any]:
    """Whether the journal still does what it is there for, and nobody's loop has seen an exception."""
    raised: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    talker = await scene.bus()

    async def check() -> None:
        envelope = await talker.publish(QueryCancel(query_id="q"))
        assert envelope.id in scene.ids()
        assert not journal.task.done()
        assert raised == []

    return check


async def test_malformed_and_senseless_control_messages_do_no_harm(
    scene: Any, journal: Any, still_works: Any, frame: Frame
) -> None:
    bus = await scene.bus("victim")
    bus.consume("victim", ["query.received"], lambda delivered: None, lambda: None).start()
    await bus.ready()
    for subject in SUBJECTS:
        names = [bus.instance, "victim"] if subject.endswith(".x") else [""]  # those are for publishers and consumers
        for name in names:
            whole = f"journal.{subject.removesuffix('x')}{name}"
            await scene.wire.inject([frame(whole, payload) for payload in PAYLOADS])
    for message in SENSELESS:
        await scene.wire.inject([frame(message.routing_key, message.encode(), seq=seq) for seq in (1, 2)])
    await still_works()


async def test_a_consumer_that_could_be_given_nothing_is_refused_and_not_kept(
    scene: Any, still_works: Any, frame: Frame
) -> None:
    await still_works()  # there is something to deliver
    plain = {"name": "odd", "subjects": ("query.cancel",), "max_in_flight": 1, "lane_width": 1}
    for fields in (
        {"name": "no word of a subject!"},
        {"name": ""},
        {"name": "x" * 500},
        {"subjects": ()},
        {"lane_width": 0},
        {"max_in_flight": 0},
    ):
        attach = JournalAttach.model_construct(consumers=(ConsumerClaim.model_construct(**(plain | fields)),))
        await scene.wire.inject([frame("journal.attach", attach.encode())])
    await still_works()
    assert await scene.store.consumer_names() == []


async def test_a_publisher_that_cannot_be_answered_costs_nobody_else_a_confirmation(
    scene: Any, still_works: Any, frame: Frame
) -> None:
    for message in (QueryCancel(query_id="q"), AnswerDialog(query_id="q", query="", answer="")):
        for instance in ("No Word!", "", "x" * 500, "ünicode"):
            frames = [frame(message.routing_key, message.encode(), instance=instance, seq=seq) for seq in (3, 3, 7)]
            await scene.wire.inject(frames)
    payload = QueryCancel(query_id="q").encode()
    long_ids = [
        Envelope("query.cancel", f"{number:07000}", "stranger", "strange", number, "q", payload).encode()
        for number in range(1, 301)
    ]
    await scene.wire.inject(long_ids)  # too many for one confirmation
    await still_works()


EVERYTHING = frozenset({""})
DECLARED = {
    "owner": Declaration(EVERYTHING, frozenset({"mine"})),
    "other": Declaration(EVERYTHING, frozenset({"theirs"})),
    "talker": Declaration(EVERYTHING),
}
FORGED: list[Callable[[int], Message]] = [
    lambda number: JournalAck(consumer="mine", numbers=(number,)),
    lambda number: JournalDetach(consumer="mine"),
    lambda number: JournalFailed(consumer="mine", number=number, attempt=1, reason="forged"),
    lambda number: JournalFlush(consumer="mine", mark=1),
    lambda number: JournalWorking(attempts={"mine": {number: 1}}),
    lambda number: JournalAttach(consumers=(ConsumerClaim(name="mine", subjects=("query.cancel",)),)),
]


async def test_a_message_in_the_name_of_another_s_consumer_changes_nothing(
    scene: Any, journal: Any, until: Any
) -> None:
    journal.bus.guard = SenderGuard(DECLARED.get)
    owner, other, talker = await scene.bus("owner"), await scene.bus("other"), await scene.bus("talker")
    given: list[Any] = []
    replaced: list[Any] = []
    consumer = owner.consume("mine", ["query.cancel"], given.append, lambda: replaced.append(1))
    await owner.ready()
    consumer.start()
    await talker.publish(QueryCancel(query_id="first"))
    await until(lambda: given)
    for refused, forge in enumerate(FORGED, 1):
        await other.publish(forge(given[0].number))
        await until(lambda refused=refused: journal.bus.counters["refused"] == refused)
    consumer.acknowledge(given[0].number)
    await talker.publish(QueryCancel(query_id="second"))
    await until(lambda: len(given) == 2)
    assert [delivered.attempt for delivered in given] == [1, 1]
    assert replaced == [] and journal.bus.counters["refused"] == len(FORGED)
