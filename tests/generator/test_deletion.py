"""Deleting a session: from the journal and from the generator's record, and not while it is in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.attachments.attachments import AttachmentStore
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
from local.core.errors import StoreFailed
from local.generator import session_changes as module
from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.output import OutcomePublisher
from local.generator.session_changes import RecordDeletion
from local.journal.store import JournalStore

Stage = Any  # of conftest.py
FilesWith = Callable[..., list[str]]  # of conftest.py
SECRET = "Mau is my cat"
ERROR = ErrorInfo(kind="gave_up", message=SECRET)


async def delete(stage: Stage, session_id: str = "s") -> ConversationResult:
    request = ConversationRequest(verb="delete", key=session_id)
    result: ConversationResult = await stage.door.bus.request(request, ConversationResult, 15)
    return result


async def shown(stage: Stage) -> ConversationResult:
    result: ConversationResult = await stage.door.bus.request(
        ConversationRequest(verb="session", key="s"), ConversationResult, 5
    )
    return result


async def answered(stage: Stage, query_id: str = "q") -> None:
    stage.model.will_say(f"Noted: {SECRET}")
    await stage.door.ask(SECRET, query_id)
    await stage.door.hears(ResponseGeneration, query_id=query_id)


async def test_a_deleted_session_has_left_no_word_in_any_file(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await answered(stage)
    assert files_with(tmp_path, SECRET)
    result = await delete(stage)
    assert (result.value["session_id"], result.value["deleted_turns"]) == ("s", 1)
    assert result.value["redacted_messages"] >= 3  # the query, its answer, and the dialog that is recorded
    assert files_with(tmp_path, SECRET) == []


async def test_what_a_tool_says_only_after_the_deletion_is_not_kept_either(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await answered(stage)
    await delete(stage)
    late = ToolResult(query_id="q", call_id="q:0:0", tool="dice", result=SECRET)
    sent = await stage.door.bus.publish(late, Trace("q", None, "s"))
    await stage.door.bus.publish(QueryCancel(query_id="unknown"))  # on record when this returns, and what was before it
    assert files_with(tmp_path, sent.id)
    assert files_with(tmp_path, SECRET) == []


async def test_a_session_with_an_open_query_is_not_deleted(stage: Stage) -> None:
    await stage.generator()
    await answered(stage)
    stage.model.will_say(asyncio.Event())
    await stage.door.ask("wait", "open")
    await stage.door.hears(QueryAccepted, query_id="open")
    result = await delete(stage)
    assert result.error.kind == "conflict"
    assert "wait for its end or cancel it" in result.error.message
    assert [turn["query_id"] for turn in (await shown(stage)).value["turns"]] == ["q", "open"]
    await stage.door.cancel("open")
    await stage.door.hears(ResponseGeneration, query_id="open")


async def test_a_session_that_nobody_knows_is_not_found(stage: Stage) -> None:
    await stage.generator()
    result = await delete(stage, "nowhere")
    assert result.error == ErrorInfo(kind="not_found", message="there is no session nowhere")


async def test_what_only_the_journal_has_of_a_session_is_deleted_there(stage: Stage, tmp_path: Path) -> None:
    await stage.generator()
    await stage.door.bus.publish(QueryFailed(query_id="q", error=ERROR), Trace("q", None, "s"))
    assert (await delete(stage)).value == {
        "session_id": "s",
        "deleted_turns": 0,
        "redacted_messages": 1,
        "copied_to": [],
    }


async def test_without_a_journal_nothing_is_deleted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JOURNAL_SECONDS", 0.1)
    await stage.generator()
    await answered(stage)
    await stage.no_journal()
    result = await delete(stage)
    assert result.error.kind == "timeout"
    assert (await shown(stage)).value["turns"]


async def test_a_journal_that_cannot_redact_keeps_the_session(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(store: JournalStore, session_id: str) -> int:
        raise StoreFailed("another program reads the file")

    monkeypatch.setattr(JournalStore, "redact_session", fails)
    await stage.generator()
    await answered(stage)
    result = await delete(stage)
    assert result.error == ErrorInfo(kind="unavailable", message="another program reads the file")
    assert (await shown(stage)).value["turns"]


async def test_an_outcome_that_had_not_left_yet_leaves_before_the_deletion(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    """Else it would reach the journal behind it."""
    async with ConversationService(stage.database) as record:
        body = QueryReceived(query_id="q", query=SECRET).encode().decode()
        await record.accept(NewTurn("q", "s", None, "e", SECRET, body))
        response = ResponseGeneration(query_id="q", status="answered", query=SECRET, answer=SECRET)
        await record.finish("q", TurnStatus.ANSWERED, SECRET, response.subject, response.encode().decode())
        deletion = RecordDeletion(stage.door.bus, record, OutcomePublisher(stage.door.bus, record))
        deleted, redacted = await deletion.delete("s")
    assert (deleted, redacted) == (1, 2)
    assert files_with(tmp_path, SECRET) == []


async def test_everybody_else_is_told_of_a_deletion_and_the_notice_stays_on_record(stage: Stage) -> None:
    await stage.generator()
    await answered(stage)
    await delete(stage)
    [notice] = stage.door.envelopes(SessionDeleted, deleted_session_id="s")
    assert (notice.session_id, notice.user_id) == (None, "user")
    [entry] = await stage.on_record(notice.correlation_id)
    assert not entry.redacted


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
    assert len(stage.door.of(SessionDeleted)) == 2


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
        deletion = RecordDeletion(stage.door.bus, record, OutcomePublisher(stage.door.bus, record), files=files)
        await deletion.delete("s")
        assert [file.name for file in (tmp_path / "attachments").iterdir()] == [shared]
        await deletion.delete("t")
    assert files_with(tmp_path, SECRET) == []


def failure(query_id: str) -> str:
    return QueryFailed(query_id=query_id, error=ERROR).encode().decode()
