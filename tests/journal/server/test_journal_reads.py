"""Asking the journal what is on record, and having it forget."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.envelope import Trace, decode
from local.bus.message import Message
from local.bus.messages import AnswerDialog, QueryCancel, QueryReceived, ToolRequest
from local.journal import server as journal_module
from local.journal.messages import JournalEntries, JournalEntry, JournalRead, JournalRedact, JournalRedacted
from local.runtime.participant import Participant, Settingless, on

SECONDS = 30.0


@pytest.fixture
async def talker(scene: Any, journal: Any) -> Any:
    return await scene.bus()


async def read(bus: Any, **wanted: Any) -> JournalEntries:
    entries: JournalEntries = await bus.request(JournalRead(**wanted), JournalEntries, SECONDS)
    assert entries.error is None
    return entries


async def read_on(bus: Any, **wanted: Any) -> list[JournalEntry]:
    """Everything, answer by answer."""
    found: list[JournalEntry] = []
    while True:
        entries = await read(bus, after=found[-1].number if found else 0, **wanted)
        found += entries.entries
        if not entries.more:
            return found


async def test_what_is_on_record_is_told_page_by_page_as_it_was_on_the_wire(talker: Any) -> None:
    sent = [await talker.publish(QueryCancel(query_id=f"q{number}")) for number in range(110)]
    first = await read(talker, limit=50)
    assert [entry.number for entry in first.entries] == list(range(1, 51))
    assert first.more
    last = await read(talker, limit=50, after=100)
    assert [entry.number for entry in last.entries] == list(range(101, 111))
    assert not last.more
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
        assert [entry.number for entry in (await read(talker, subjects=subjects)).entries] == expected
    wanted = {"session_id": "t", "subjects": ("query.cancel",)}
    assert [entry.number for entry in (await read(talker, **wanted)).entries] == [6, 8]
    assert [entry.number for entry in (await read(talker, correlation_id="s2")).entries] == [3, 4]


async def test_an_answer_is_bounded_and_says_that_there_is_more(talker: Any) -> None:
    for number in range(30):
        await talker.publish(QueryReceived(query_id=f"q{number}", query="x" * 5000))
    entries = await read(talker, limit=1000)
    assert entries.more
    assert sum(len(entry.frame) for entry in entries.entries) <= journal_module.READ_BYTES
    assert [entry.number for entry in await read_on(talker, limit=1000)] == list(range(1, 31))


async def test_a_message_larger_than_an_answer_comes_alone_and_whole(talker: Any, scene: Any) -> None:
    large = QueryReceived(query_id="q", query="x" * (journal_module.READ_BYTES + 1))
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
    private, public = (await read(talker)).entries
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


async def test_a_message_on_its_way_to_the_disk_is_deleted_too(talker: Any) -> None:
    talker.post(ToolRequest(query_id="q", call_id="c", tool="t", args={}), Trace("q", None, "s"))
    redacted = await talker.request(JournalRedact(session_id="s"), JournalRedacted, SECONDS)
    assert redacted.count == 1


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
    assert (await read(talker)).entries == ()
