"""Incognito sessions: nothing of them is left when they have ended."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import (
    ConversationRequest,
    ConversationResult,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionDeleted,
)
from local.generator import session_changes as record_deletion
from local.generator.history import ConversationService, NewTurn
from local.generator.output import OutcomePublisher
from local.generator.session_changes import IncognitoSessions, RecordDeletion

Stage = Any  # of conftest.py
FilesWith = Callable[..., list[str]]  # of conftest.py
SECRET = "Mau is my cat"


async def answered(stage: Stage, query_id: str = "q", session: str = "s", *, incognito: bool = True) -> None:
    stage.model.will_say(f"Noted: {SECRET}", to=f"{SECRET} {query_id}")
    await stage.frontend.ask(f"{SECRET} {query_id}", query_id, session=session, incognito=incognito)
    response = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    assert response.incognito is incognito


async def sessions(stage: Stage) -> dict[str, bool]:
    request = ConversationRequest(verb="sessions")
    listed = (await stage.frontend.bus.request(request, ConversationResult, 10)).value["sessions"]
    return {session["session_id"]: session["incognito"] for session in listed}


async def test_what_a_killed_process_has_left_is_gone_before_the_next_one_serves(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    generator = await stage.generator()
    await answered(stage)
    stage.model.will_say(asyncio.Event())
    await stage.frontend.ask(f"{SECRET}, still", "open", incognito=True)
    await stage.frontend.hears(QueryAccepted, query_id="open")
    await generator.kill()
    assert files_with(tmp_path, SECRET)
    await stage.generator()
    assert files_with(tmp_path, SECRET) == []
    assert await sessions(stage) == {}
    assert [entry.redacted for entry in await stage.on_record("open", QueryReceived)] == [True]


@pytest.mark.thorough
async def test_what_could_not_be_deleted_at_the_start_is_deleted_as_soon_as_possible(
    stage: Stage, tmp_path: Path, files_with: FilesWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_deletion, "JOURNAL_SECONDS", 0.1)
    generator = await stage.generator()
    await answered(stage)
    await generator.kill()
    await stage.no_journal()
    await stage.generator(incognito_minutes=0.005)
    monkeypatch.setattr(record_deletion, "JOURNAL_SECONDS", 10.0)
    await stage.journal()
    await stage.frontend.hears(SessionDeleted)
    assert files_with(tmp_path, SECRET, name="journal.db*") == []


async def test_it_ends_when_nothing_was_asked_for_long(stage: Stage) -> None:
    await stage.generator(incognito_minutes=0.002)
    await answered(stage)
    await answered(stage, "q2", "kept", incognito=False)
    assert (await stage.frontend.hears(SessionDeleted)).deleted_session_id == "s"
    assert "kept" in await sessions(stage)


async def test_a_process_whose_record_another_one_has_leaves_incognito_sessions_to_that_and_tells_of_no_error(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ConversationService(tmp_path / "c.db") as replaced, ConversationService(tmp_path / "c.db"):
        deletion = RecordDeletion(stage.frontend.bus, replaced, OutcomePublisher(stage.frontend.bus, replaced))
        async with IncognitoSessions(replaced, deletion, 60.0).end_in_time():
            pass
    assert [entry.message for entry in caplog.records if entry.levelname == "ERROR"] == []


async def test_what_was_refused_because_its_session_is_kept_is_incognito_all_the_same(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    """An orderly end leaves nothing of that, nor of the incognito sessions."""
    generator = await stage.generator()
    await answered(stage, "q1", "hidden")
    await answered(stage, "q2", "kept", incognito=False)
    assert await sessions(stage) == {"hidden": True, "kept": False}
    for session, text in (("hidden", "The cat is Tom"), ("kept", "The dog is Rex")):
        await stage.frontend.ask(text, f"of {session}", session=session, incognito=session == "kept")
        failed = await stage.frontend.hears(QueryFailed, query_id=f"of {session}")
        assert failed.error.kind == "conflict" and "incognito" in failed.error.message
    assert files_with(tmp_path, "Rex") and files_with(tmp_path, f'{SECRET} q1"')
    await generator.stop()
    assert files_with(tmp_path, "Rex") == files_with(tmp_path, f'{SECRET} q1"') == []
    assert files_with(tmp_path, f"{SECRET} q2")
    assert [notice.deleted_session_id for notice in stage.frontend.of(SessionDeleted)] == ["hidden"]
    await stage.generator()
    assert await sessions(stage) == {"kept": False}


async def test_what_was_refused_ends_with_the_idle_ones_and_one_that_waits_for_an_answer_is_not_idle(
    stage: Stage,
) -> None:
    async with ConversationService(stage.database) as record:
        for query_id, session, incognito in (("q1", "s", False), ("q2", "s", True), ("open", "t", True)):
            await record.accept(NewTurn(query_id, session, None, "e", SECRET, "{}", incognito=incognito))
        deletion = RecordDeletion(stage.frontend.bus, record, OutcomePublisher(stage.frontend.bus, record))
        await IncognitoSessions(record, deletion, 60.0).end_idle_since(0.0)
        assert await record.turn("q2") is not None
        await IncognitoSessions(record, deletion, 60.0).end_idle_since(math.inf)
        left = await record.session("s") + await record.session("t")
        assert [turn.query_id for turn in left] == ["q1", "open"]
