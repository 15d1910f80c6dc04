"""Questions about the generator's record."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.agents.conversation_desk import ConversationDesk
from local.protocol.messages import ConversationRequest, ConversationResult
from local.services.conversation import Asked, ConversationService, TurnStatus


@pytest.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[ConversationService]:
    async with ConversationService(tmp_path / "c.db") as service:
        for number in (1, 2):
            await service.accept(Asked(f"q{number}", "s1", "user", "e", f"Question {number}", "{}"))
            await service.finish(
                f"q{number}", TurnStatus.ANSWERED, f"Answer {number}", "response.generation", '{"a": 1}'
            )
        await service.accept(Asked("q3", "s2", None, "e", "Still open", "{}"))
        yield service


async def ask(conversation: ConversationService, verb: Any, key: str = "") -> ConversationResult:
    async def delete(session_id: str) -> tuple[int, int]:
        return await conversation.delete_session(session_id), 7

    return await ConversationDesk(conversation, "Be brief.", delete).answer(ConversationRequest(verb=verb, key=key))


async def value(conversation: ConversationService, verb: str, key: str = "") -> dict[str, Any]:
    result = await ask(conversation, verb, key)
    assert result.error is None
    assert result.value is not None
    return result.value


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


async def test_one_query_open_or_ended(conversation: ConversationService) -> None:
    ended, still_open = await value(conversation, "query", "q1"), await value(conversation, "query", "q3")
    assert (ended["outcome_subject"], ended["outcome"]) == ("response.generation", {"a": 1})
    assert (still_open["status"], still_open["outcome"]) == ("open", None)


async def test_a_deleted_session_is_gone(conversation: ConversationService) -> None:
    assert await value(conversation, "delete", "s1") == {
        "session_id": "s1", "deleted_turns": 2, "redacted_messages": 7,
    }  # fmt: skip
    assert [entry["session_id"] for entry in (await value(conversation, "sessions"))["sessions"]] == ["s2"]


@pytest.mark.parametrize(("verb", "key"), [("session", "s9"), ("query", "q9")])
async def test_what_is_not_there_is_not_found_in_words(conversation: ConversationService, verb: str, key: str) -> None:
    result = await ask(conversation, verb, key)
    assert result.value is None
    assert result.error is not None
    assert result.error.kind == "not_found"
    assert key in result.error.message
