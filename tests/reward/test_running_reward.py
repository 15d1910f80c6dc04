"""What users make of a respondent's answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.running_reward import RunningReward


@pytest.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[ConversationService]:
    async with ConversationService(tmp_path / "c.db") as conversation:
        yield conversation


@pytest.fixture
def running(conversation: ConversationService) -> RunningReward:
    return RunningReward(conversation)


async def answered(conversation: ConversationService, query_id: str, **outcome: str) -> None:
    await conversation.accept(NewTurn(query_id, "s", "user", "e", "?", "{}"))
    await conversation.finish(query_id, TurnStatus.ANSWERED, "!", "response.generation", json.dumps(outcome))


async def test_rewards_are_counted_and_averaged_for_each_prompt(
    conversation: ConversationService, running: RunningReward
) -> None:
    for number, (prompt, reward) in enumerate([("terse", 1), ("terse", 1), ("terse", -1), ("terse", 1), ("kind", -1)]):
        await answered(conversation, f"q{number}", prompt=prompt)
        await running.note(f"q{number}", reward, 1.0)
    assert await running.by_prompt() == [("terse", 4, 0.5), ("kind", 1, -1.0)]


async def test_the_latest_reward_of_an_answer_takes_the_place_of_the_others(
    conversation: ConversationService, running: RunningReward
) -> None:
    await answered(conversation, "q", prompt="terse")
    for reward, rated_at, expected in (
        (1.0, 1.0, [("terse", 1, 1.0)]),
        (-1.0, 2.0, [("terse", 1, -1.0)]),
        (1.0, 1.5, [("terse", 1, -1.0)]),
        (0.0, 3.0, []),
        (1.0, 2.5, []),
        (1.0, 4.0, [("terse", 1, 1.0)]),
    ):
        await running.note("q", reward, rated_at)
        assert await running.by_prompt() == expected


async def test_what_is_not_on_record_has_no_reward(conversation: ConversationService, running: RunningReward) -> None:
    await running.note("unknown", 1.0, 1.0)
    await conversation.accept(NewTurn("failed", "s", "user", "e", "?", "{}"))
    await conversation.finish("failed", TurnStatus.FAILED, None, "query.failed", "{}")
    await running.note("failed", 1.0, 1.0)
    assert await running.by_prompt() == []
