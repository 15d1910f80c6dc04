"""Deleting takes the large fields along that lie outside the journal, too, unless somebody else refers to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Trace, decode
from local.bus.messages import ConversationResult, QueryReceived, ResponseGeneration
from local.bus.receiving import RejectLog
from local.bus.zeromq import MemoryHub
from local.journal import server as journal_module
from local.journal.client import JournalClient
from local.journal.messages import JournalEntries, JournalRead, JournalRedact, JournalRedacted
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.memory.messages import MemoryDeleted
from local.runtime.runner import ParticipantRunner

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
    async with asyncio.timeout(20), Bus("door", hub.transport(), blobs=blobs, durability=JournalClient()) as bus:
        await ready.wait()
        await bus.ready()
        yield bus
    stop.set()
    await serving


async def answer(bus: Bus, query_id: str, session_id: str, text: str = LARGE) -> None:
    response = ResponseGeneration(query_id=query_id, status="answered", query="?", answer=text)
    await bus.publish(response, Trace(query_id, None, session_id))


async def redacted(bus: Bus, **what: str) -> int:
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
        await answer(bus, "q1", "first")
        await answer(bus, "q2", "second")
        assert len(blobs_in(tmp_path)) == 1
        assert await redacted(bus, session_id="first") == 1
        assert len(blobs_in(tmp_path)) == 1
        assert await redacted(bus, session_id="second") == 1
        assert blobs_in(tmp_path) == []


async def test_a_query_goes_with_all_that_it_caused_and_nothing_else(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        for query_id in ("q1", "q2"):
            await bus.publish(QueryReceived(query_id=query_id, query="?"), Trace(query_id, None, "s"))
            await answer(bus, query_id, "s", f"{query_id} {LARGE}")
        assert await redacted(bus, query_id="q1") == 2
        assert await subjects_left(bus) == ["query.received", "response.generation"]
        assert len(blobs_in(tmp_path)) == 1


async def test_what_mentions_a_text_goes_also_where_it_does_so_in_a_large_field(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await answer(bus, "q1", "s", f"of {ENGRAM}")
        await answer(bus, "q2", "s", f"of {ENGRAM} {LARGE}")
        await answer(bus, "q3", "s", LARGE)
        assert await redacted(bus, mentioned=ENGRAM) == 2
        assert await subjects_left(bus) == ["response.generation"]
        assert len(blobs_in(tmp_path)) == 1


async def test_several_things_are_deleted_at_once_and_again_there_is_nothing_left(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        for query_id in ("q1", "q2", "q3"):
            await answer(bus, query_id, query_id, ENGRAM if query_id == "q3" else "no")
        what = {"session_id": "q1", "query_id": "q2", "mentioned": ENGRAM}
        assert await redacted(bus, **what) == 3
        assert await redacted(bus, **what) == 0


async def test_the_message_that_says_what_is_deleted_stays_for_those_who_have_not_heard_it(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(MemoryDeleted(engram_id=ENGRAM, query_id="q1"))
        assert await redacted(bus, mentioned=ENGRAM) == 0
        assert await subjects_left(bus) == ["memory.deleted"]


async def test_a_large_field_of_what_was_never_on_record_goes_with_the_next_deletion_a_minute_later(
    tmp_path: Path,
) -> None:
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(NOT_KEPT)
        await answer(bus, "q1", "s", f"kept {LARGE}")
        await redacted(bus, session_id="nowhere")
        assert len(blobs_in(tmp_path)) == 2
        left_for(tmp_path, MINUTE)
        await redacted(bus, session_id="nowhere")
        assert len(blobs_in(tmp_path)) == 1
        assert await subjects_left(bus) == ["response.generation"]


async def test_a_large_field_that_is_stored_again_counts_as_new(tmp_path: Path) -> None:
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(NOT_KEPT)
        left_for(tmp_path, MINUTE)
        await bus.publish(NOT_KEPT)
        await redacted(bus, session_id="nowhere")
        assert len(blobs_in(tmp_path)) == 1


async def test_what_nothing_refers_to_any_more_is_cleared_up_without_a_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "HOUSEKEEPING_SECONDS", 0.01)
    async with journaled_bus(tmp_path) as bus:
        await bus.publish(NOT_KEPT)
        left_for(tmp_path, MINUTE)
        while blobs_in(tmp_path):  # the journal keeps house until then
            await bus.request(JournalRead(), JournalEntries, 10)


async def test_large_fields_count_for_the_limit_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "HOUSEKEEPING_SECONDS", 0.01)
    async with journaled_bus(tmp_path, max_megabytes=2.0) as bus:
        for number in range(4):
            await answer(bus, f"q{number}", "s", f"{number} {LARGE * 8}")  # 0.8 MB each
        left_for(tmp_path, MINUTE)
        while len(blobs_in(tmp_path)) > 2:  # the journal keeps house until then
            await bus.request(JournalRead(), JournalEntries, 10)
        assert len(await subjects_left(bus)) == 2
        last = [file.read_text()[1:3] for file in blobs_in(tmp_path)]
    assert sorted(last) == ["2 ", "3 "]


async def test_samples_of_what_nobody_took_go_with_any_deletion(tmp_path: Path) -> None:
    RejectLog(tmp_path / "rejected.jsonl").add("tool", "no JSON", b"my secret")
    async with journaled_bus(tmp_path) as bus:
        await redacted(bus, session_id="nowhere")
    assert not (tmp_path / "rejected.jsonl").exists()
