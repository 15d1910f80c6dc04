"""How long many agents take."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from agent_stage.stage import Stage
from agent_stage.swarm_stage import swarm

from local.bus.messages import ResponseGeneration
from local.models.chat import ContentDelta, Delta, Done, ToolCall, Usage
from local.swarm.messages import AgentRequest, AgentResult

log = logging.getLogger(__name__)
pytestmark = pytest.mark.usefixtures("large_model")  # agents are not on the lists of smaller ones


TIERS = {"": 3, "1": 3, "2": 2}  # how many agents who is so deep has made: 3 + 9 + 18 are 30
MODEL_SECONDS = 0.35


class TieredModel:
    """Takes its time for each message, has agents made as deep as it can, and then adds up."""

    def __init__(self) -> None:
        self.calls = 0

    async def chat(self, model: str, messages: Any, *, tools: Any = (), **_: Any) -> AsyncGenerator[Delta, None]:
        self.calls += 1
        await asyncio.sleep(MODEL_SECONDS)  # this is the model
        question = next(str(each["content"]) for each in messages if each["role"] == "user")
        tier = question.rpartition("tier ")[2]
        if messages[-1]["role"] == "user" and tier in TIERS:
            below = str(int(tier or 0) + 1)
            yield ToolCall("delegate_task", {"tasks": [f"{number} of tier {below}" for number in range(TIERS[tier])]})
        else:
            yield ContentDelta("30 have answered" if not tier else f"one of tier {tier}")
        yield Done(Usage(50, 10), model=model)


async def longest_way() -> float:
    """The seconds of two messages of the root, two of each of two tiers, and one of the last."""
    started = time.monotonic()
    for _ in range(7):
        await asyncio.sleep(MODEL_SECONDS)
    return time.monotonic() - started


@pytest.mark.thorough  # 31 turns, 44 calls of a model; test_who_waits_for_agents_keeps_no_place_from_them is near
async def test_thirty_agents_in_three_tiers_take_little_longer_than_the_longest_way(stage: Stage) -> None:
    model = TieredModel()
    stage.model.chat = model.chat  # type: ignore[method-assign]
    await stage.generator(max_concurrent_turns=18)
    await swarm(stage)
    started = time.monotonic()
    way = asyncio.create_task(longest_way())  # which takes longer, too, where the machine is busy
    await stage.door.ask("Begin, tier ", "q")
    answer = await stage.end_of("q")
    seconds = time.monotonic() - started
    assert isinstance(answer, ResponseGeneration) and answer.answer == "30 have answered"
    told = await stage.door.bus.request(AgentRequest(verb="list"), AgentResult, 5)
    depths = [each.depth for each in told.agents]
    assert [depths.count(depth) for depth in (1, 2, 3)] == [3, 9, 18] and model.calls == 1 + 12 + 18 + 1 + 12
    longest = await way
    log.info("%.2f s, the longest way is %.2f s", seconds, longest)
    assert seconds <= 1.5 * longest
