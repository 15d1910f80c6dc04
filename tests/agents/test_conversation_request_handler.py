"""Questions about the generator's record."""

from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.messages import (
    ContextGauge,
    ConversationRequest,
    ConversationResult,
    QueryFailed,
    ResponseGeneration,
    UsageInfo,
)
from local.bus.zeromq import MemoryHub
from local.generator.agent import ConversationRequestHandler
from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.prompt import PromptInputs, as_json, compose
from local.generator.session_changes import SessionChanges
from local.generator.sessions import SessionRecord
from local.instructions.texts import SourcedText


@pytest.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[ConversationService]:
    async with ConversationService(tmp_path / "c.db") as service:
        for number in (1, 2):
            await service.accept(NewTurn(f"q{number}", "s1", "user", "e", f"Question {number}", "{}"))
            await answered(service, f"q{number}", f"Answer {number}")
        await service.accept(NewTurn("q3", "s2", None, "e", "Still open", "{}"))
        yield service


async def answered(conversation: ConversationService, query_id: str, answer: str, used: int | None = None) -> None:
    gauge = None if used is None else ContextGauge(used=used, limit=4096, parts={"history": used})
    response = ResponseGeneration(
        query_id=query_id, status="answered", query="?", answer=answer, usage=UsageInfo(context=gauge)
    )
    outcome = response.encode().decode()
    await conversation.finish(query_id, TurnStatus.ANSWERED, answer, response.subject, outcome)


def inputs(today: date) -> PromptInputs:
    return PromptInputs(SourcedText("generator.yaml", "Be brief."), today)


async def ask(conversation: ConversationService, verb: Any, key: str = "", **fields: Any) -> ConversationResult:
    async def delete(session_id: str) -> tuple[int, int]:
        return await conversation.delete_session(session_id), 7

    sessions = SessionRecord(conversation, "A")
    async with Bus("generator", MemoryHub().transport()) as bus:
        handler = ConversationRequestHandler(
            conversation,
            sessions,
            SessionChanges(bus, sessions),
            lambda history, today, user_id: compose(inputs(today), history),
            delete,
            lambda today, user_id, options: as_json("gemma", inputs(today)),
        )
        return await handler.answer(ConversationRequest(verb=verb, key=key, **fields))


async def value(conversation: ConversationService, verb: str, key: str = "", **fields: Any) -> dict[str, Any]:
    result = await ask(conversation, verb, key, **fields)
    assert result.error is None
    assert result.value is not None
    return result.value


async def test_the_prompt_is_told_section_by_section(conversation: ConversationService) -> None:
    prompt = await value(conversation, "prompt")
    assert [section["name"] for section in prompt["sections"]] == ["role", "date"]
    assert prompt["tokens"] == sum(section["tokens"] for section in prompt["sections"]) > 0


async def test_all_sessions(conversation: ConversationService) -> None:
    sessions = (await value(conversation, "sessions"))["sessions"]
    assert {session["session_id"]: session["turns"] for session in sessions} == {"s1": 2, "s2": 1}


async def test_one_session_shows_the_messages_as_the_model_gets_them(conversation: ConversationService) -> None:
    session = await value(conversation, "session", "s1")
    assert session["messages"][0]["role"] == "system"
    assert session["messages"][0]["content"].startswith("Be brief.")
    assert [message["content"] for message in session["messages"][1:]] == [
        "Question 1",
        "Answer 1",
        "Question 2",
        "Answer 2",
    ]
    assert [(turn["query_id"], turn["status"]) for turn in session["turns"]] == [("q1", "answered"), ("q2", "answered")]


async def test_a_session_shows_how_full_the_window_was_at_the_last_prompt_there_was(
    conversation: ConversationService,
) -> None:
    assert (await value(conversation, "session", "s1"))["context"] is None
    for number, used in (("q4", 100), ("q5", 200)):
        await conversation.accept(NewTurn(number, "s2", None, "e", "?", "{}"))
        await answered(conversation, number, "!", used)
    await conversation.accept(NewTurn("q6", "s2", None, "e", "?", "{}"))
    failure = QueryFailed.model_validate({"query_id": "q6", "error": {"kind": "busy", "message": "Wait."}})
    await conversation.finish("q6", TurnStatus.FAILED, None, failure.subject, failure.encode().decode())
    gauge = (await value(conversation, "session", "s2"))["context"]
    assert gauge == {"used": 200, "limit": 4096, "parts": {"history": 200}}


async def test_one_query_open_or_ended(conversation: ConversationService) -> None:
    ended, still_open = await value(conversation, "query", "q1"), await value(conversation, "query", "q3")
    assert (ended["outcome_subject"], ended["outcome"]["answer"]) == ("response.generation", "Answer 1")
    assert (still_open["status"], still_open["outcome"]) == ("open", None)


async def test_a_deleted_session_is_gone(conversation: ConversationService) -> None:
    assert await value(conversation, "delete", "s1") == {
        "session_id": "s1", "deleted_turns": 2, "redacted_messages": 7, "copied_to": [],
    }  # fmt: skip
    assert [entry["session_id"] for entry in (await value(conversation, "sessions"))["sessions"]] == ["s2"]


@pytest.mark.parametrize(("verb", "key"), [("session", "s9"), ("query", "q9")])
async def test_what_is_not_there_is_not_found_in_words(conversation: ConversationService, verb: str, key: str) -> None:
    result = await ask(conversation, verb, key)
    assert result.value is None
    assert result.error is not None
    assert result.error.kind == "not_found"
    assert key in result.error.message
