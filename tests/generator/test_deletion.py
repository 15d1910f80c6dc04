"""Deleting a session: from the journal and from the generator's record, and not while it is in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.message import ErrorInfo
from local.bus.messages import (
    ConversationRequest,
    ConversationResult,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionDeleted,
    ToolResult,
)
from local.core.attachments import AttachmentStore
from local.core.errors import HandedBack, StoreFailed
from local.generator import session_changes as module
from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.output import OutcomePublisher
from local.generator.session_changes import RecordDeletion
from local.journal.store import JournalStore
from local.memory.messages import MemoryDeleted
from local.models.chat import ToolCall
from local.runtime.participant import Settingless
from local.tools.tool import Tool, ToolOutput

Stage = Any  # of conftest.py
FilesWith = Callable[..., list[str]]  # of conftest.py
SECRET = "Mau is my cat"
ERROR = ErrorInfo(kind="gave_up", message=SECRET)


async def delete(stage: Stage, session_id: str = "s") -> ConversationResult:
    request = ConversationRequest(verb="delete", key=session_id)
    result: ConversationResult = await stage.frontend.bus.request(request, ConversationResult, 15)
    return result


async def shown(stage: Stage) -> ConversationResult:
    result: ConversationResult = await stage.frontend.bus.request(
        ConversationRequest(verb="session", key="s"), ConversationResult, 5
    )
    return result


async def answered(stage: Stage, query_id: str = "q") -> None:
    stage.model.will_say(f"Noted: {SECRET}")
    await stage.frontend.ask(SECRET, query_id)
    await stage.frontend.hears(ResponseGeneration, query_id=query_id)


async def test_a_session_with_an_open_query_is_not_deleted(stage: Stage) -> None:
    await stage.generator()
    await answered(stage)
    stage.model.will_say(asyncio.Event())
    await stage.frontend.ask("wait", "open")
    await stage.frontend.hears(QueryAccepted, query_id="open")
    result = await delete(stage)
    assert result.error.kind == "conflict"
    assert "wait for its end or cancel it" in result.error.message
    assert [turn["query_id"] for turn in (await shown(stage)).value["turns"]] == ["q", "open"]
    await stage.frontend.cancel("open")
    await stage.frontend.hears(ResponseGeneration, query_id="open")


async def test_an_outcome_that_had_not_left_yet_leaves_before_the_deletion(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    """Else it would reach the journal behind it."""
    async with ConversationService(stage.database) as record:
        body = QueryReceived(query_id="q", query=SECRET).encode().decode()
        await record.accept(NewTurn("q", "s", None, "e", SECRET, body))
        response = ResponseGeneration(query_id="q", status="answered", query=SECRET, answer=SECRET)
        await record.finish("q", TurnStatus.ANSWERED, SECRET, response.subject, response.encode().decode())
        deletion = RecordDeletion(stage.frontend.bus, record, OutcomePublisher(stage.frontend.bus, record))
        deleted, redacted = await deletion.delete("s")
    assert (deleted, redacted) == (1, 2)
    assert files_with(tmp_path, SECRET) == []


async def test_a_deletion_that_ended_half_way_is_told_again_when_it_is_repeated(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(conversation: ConversationService, session_id: str) -> int:
        raise StoreFailed("no room")

    await stage.generator()
    await answered(stage)
    with monkeypatch.context() as patch:
        patch.setattr(ConversationService, "delete_session", fails)
        assert (await delete(stage)).error.kind == "store_failed"
    assert (await shown(stage)).value["turns"]
    assert (await delete(stage)).value["deleted_turns"] == 1
    assert len(stage.frontend.of(SessionDeleted)) == 2


async def test_files_that_only_a_deleted_session_has_named_go_with_it(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    files = AttachmentStore(tmp_path / "attachments")
    own, shared = (files.put(name, "text/plain", SECRET.encode(), SECRET).id for name in ("own.txt", "shared.txt"))
    async with ConversationService(stage.database) as record:
        for query_id, session, named in (("q1", "s", (own, shared)), ("q2", "t", (shared,))):
            body = QueryReceived(query_id=query_id, query="?", attachments=named).encode().decode()
            await record.accept(NewTurn(query_id, session, None, "e", "?", body))
            await record.finish(query_id, TurnStatus.FAILED, None, QueryFailed.subject, failure(query_id))
        deletion = RecordDeletion(stage.frontend.bus, record, OutcomePublisher(stage.frontend.bus, record), files=files)
        await deletion.delete("s")
        assert [file.name for file in (tmp_path / "attachments").iterdir()] == [shared]
        await deletion.delete("t")
    assert files_with(tmp_path, SECRET) == []


def failure(query_id: str) -> str:
    return QueryFailed(query_id=query_id, error=ERROR).encode().decode()


async def test_a_deleted_session_has_left_no_word_in_any_file_and_the_notice_of_it_stays(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await answered(stage)
    assert files_with(tmp_path, SECRET)
    result = await delete(stage)
    assert (result.value["session_id"], result.value["deleted_turns"]) == ("s", 1)
    assert result.value["redacted_messages"] >= 3  # the query, its answer, and the dialog that is recorded
    assert files_with(tmp_path, SECRET) == []
    [notice] = stage.frontend.envelopes(SessionDeleted, deleted_session_id="s")
    assert (notice.session_id, notice.user_id) == (None, "user")
    [entry] = await stage.on_record(notice.correlation_id)
    assert not entry.redacted
    late = ToolResult(query_id="q", call_id="q:0:0", tool="dice", result=SECRET)
    sent = await stage.frontend.bus.publish(late, Trace("q", None, "s"))
    await stage.frontend.bus.publish(
        QueryCancel(query_id="unknown")
    )  # on record when this returns, and what was before it
    assert files_with(tmp_path, sent.id)
    assert files_with(tmp_path, SECRET) == []
    gone = ErrorInfo(kind="not_found", message="there is no session nowhere")
    assert (await delete(stage, "nowhere")).error == gone


async def test_without_a_journal_that_redacts_nothing_is_deleted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(store: JournalStore, session_id: str) -> int:
        raise StoreFailed("another program reads the file")

    await stage.generator()
    await answered(stage)
    with monkeypatch.context() as patch:
        patch.setattr(JournalStore, "redact_session", fails)
        refused = (await delete(stage)).error
    assert refused == ErrorInfo(kind="unavailable", message="another program reads the file")
    monkeypatch.setattr(module, "JOURNAL_SECONDS", 0.05)
    await stage.no_journal()
    assert (await delete(stage)).error.kind == "timeout"
    assert (await shown(stage)).value["turns"]


# What a user has deleted from the memory.

ENGRAM = "0123456789abcdef" * 2


class RecallTool(Tool):
    """Remember."""

    name = "recall"
    safety = "L0"

    async def run(self) -> ToolOutput:
        return ToolOutput(f"You said: {SECRET}", (f"engram:{ENGRAM}",))


async def recall(stage: Stage, query_id: str, *then: Any) -> None:
    await stage.tool(RecallTool(Settingless()))
    stage.model.will_say(ToolCall("recall", {}), to="What is Mau?")
    stage.model.will_say(*then, to="What is Mau?")
    await stage.frontend.ask("What is Mau?", query_id, session="other")


async def memory_deletes(stage: Stage, query_id: str = "q") -> int:
    """Have the memory say that it has deleted an engram; gives how often it was acknowledged before."""
    before = len(stage.acknowledged())
    await stage.frontend.bus.publish(MemoryDeleted(engram_id=ENGRAM, query_id=query_id))
    return before


async def record(stage: Stage, verb: str, key: str) -> ConversationResult:
    request = ConversationRequest.model_validate({"verb": verb, "key": key})
    result: ConversationResult = await stage.frontend.bus.request(request, ConversationResult, 10)
    return result


async def test_what_another_session_has_recalled_of_it_is_gone_from_the_record_and_from_the_journal(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await answered(stage)
    stage.model.will_say("Nothing.")
    await stage.frontend.ask("And else?", "q1")
    await recall(stage, "q2", "A cat.")
    for query_id in ("q", "q1", "q2"):
        await stage.end_of(query_id)
    before = await memory_deletes(stage)
    await stage.frontend.until(lambda: len(stage.acknowledged()) > before)
    assert files_with(tmp_path, SECRET, name="conversation.db*") == []
    assert [turn["query_id"] for turn in (await record(stage, "session", "s")).value["turns"]] == ["q1"]
    assert (await record(stage, "query", "q")).error.kind == "not_found"
    [turn] = (await record(stage, "session", "other")).value["turns"]
    assert turn["answer"] == "A cat."
    outcome = (await record(stage, "query", "q2")).value["outcome"]
    assert outcome["tool_calls"][0]["result"] == "[a memory that was deleted]"
    for entry in await stage.on_record("q2"):
        assert SECRET not in entry.frame


@pytest.mark.parametrize("recalls", [True, False], ids=["recalled it", "in its session"])
async def test_a_turn_that_has_just_recalled_it_ends_first_and_does_not_bring_it_back(
    stage: Stage, tmp_path: Path, files_with: FilesWith, monkeypatch: pytest.MonkeyPatch, recalls: bool
) -> None:
    put_off, may_end = asyncio.Event(), asyncio.Event()
    forget = RecordDeletion.forget

    async def noted(deletion: RecordDeletion, deleted: MemoryDeleted) -> None:
        try:
            await forget(deletion, deleted)
        except HandedBack:
            put_off.set()
            raise

    monkeypatch.setattr(RecordDeletion, "forget", noted)
    await stage.journal(ack_wait_seconds=0.1)
    await stage.generator()
    if recalls:
        await recall(stage, "q2", may_end, "A cat.")
        await stage.frontend.until(lambda: len(stage.model.asked) == 2)
    else:
        await answered(stage)
        stage.model.will_say(may_end, "Still here.", to="Wait")
        await stage.frontend.ask("Wait", "q2")
        await stage.frontend.hears(QueryAccepted, query_id="q2")
    before = await memory_deletes(stage)
    await asyncio.wait_for(put_off.wait(), 90)
    assert len(stage.acknowledged()) == before
    may_end.set()
    await stage.frontend.hears(ResponseGeneration, query_id="q2")
    await stage.frontend.until(lambda: len(stage.acknowledged()) > before + 1)
    assert files_with(tmp_path, SECRET, name="*" if recalls else "conversation.db*") == []
