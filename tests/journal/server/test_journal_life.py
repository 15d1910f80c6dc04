"""The journal from its start to its end: what it says of itself, its housekeeping, and what makes it start anew."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from local.bus import bus as bus_module
from local.bus.envelope import Envelope
from local.bus.messages import ParticipantStatus, QueryAccepted, QueryCancel, QueryReceived
from local.core.errors import JournalFull, NoJournal, StoreFailed, StoreFull
from local.journal import server as journal_module
from local.journal import writer as writer_module
from local.journal.delivery import Settled
from local.journal.messages import JournalEntries, JournalRead
from local.journal.recovery import suspicion_path
from local.journal.store import JournalStore
from local.runtime.participant import Participant, Resources, Settingless, on

SECONDS = 30.0


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
    monkeypatch.setattr(journal_module, "HOUSEKEEPING_SECONDS", 0.01)
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
    monkeypatch.setattr(journal_module, "HOUSEKEEPING_SECONDS", 0.01)
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
    async with JournalStore(scene.file) as store:
        known = await store.consumer("reader")
    assert (known.served_by, known.fenced) == (None, (served.bus.instance,))
    assert known.floor == 1


async def test_a_bus_that_stands_still_while_it_delivers_from_the_disk_does_not_end_it(
    scene: Any, until: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = await scene.journal(ack_wait_seconds=0.1)
    talker, reader = await scene.bus(), Reader()
    await scene.serve(reader)
    with scene.losing("journal.deliver."):
        await talker.publish(QueryReceived(query_id="q", query="one"))
        monkeypatch.setattr(bus_module, "PUBLISH_SECONDS", 0.01)
        scene.wire.down()
    await until(lambda: "could not be given to reader" in caplog.text or journal.task.done())
    scene.wire.up()
    assert await asyncio.wait_for(reader.got.get(), SECONDS) == "one"
    assert not journal.task.done()


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


def test_its_file_lies_in_the_data_directory(tmp_path: Path) -> None:
    journal = journal_module.Journal.build(journal_module.JournalConfig(), Resources(tmp_path))
    assert journal._store._path == tmp_path / "journal.db"
