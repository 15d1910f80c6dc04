"""The to-do list that a session's turns have left."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.generator.builtin_tools import TodoRecord
from local.generator.history import ConversationService, NewTurn, TurnStatus


@pytest.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[ConversationService]:
    async with ConversationService(tmp_path / "c.db") as service:
        yield service


async def answered(service: ConversationService, query_id: str, session_id: str, *calls: dict[str, Any]) -> None:
    await service.accept(NewTurn(query_id, session_id, None, f"envelope of {query_id}", "Well?", "{}"))
    outcome = json.dumps({"tool_calls": calls}, separators=(",", ":"))
    await service.finish(query_id, TurnStatus.ANSWERED, "Well.", "response.generation", outcome)


async def test_it_is_the_call_that_has_set_the_list_last(conversation: ConversationService) -> None:
    first, second = ({"tool": "todo", "args": {"n": n}, "result": "set"} for n in (1, 2))
    await answered(conversation, "q1", "s", first, second)
    await answered(conversation, "q2", "s", {"tool": "dice", "args": {}, "result": "6"})
    assert await TodoRecord(conversation, "A").latest("s") == [second]


async def test_a_session_without_a_list_is_not_waited_for(
    conversation: ConversationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(conversation, "q1", "other", {"tool": "todo", "args": {}, "result": "set"})
    await answered(conversation, "q2", "s", {"tool": "dice", "args": {}, "result": "6"})
    monkeypatch.setattr(asyncio, "to_thread", None)
    assert await TodoRecord(conversation, "A").latest("s") == []
