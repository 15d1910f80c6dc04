"""A user's turn takes the place of background work on a model server that serves one call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from local.bus.bus import Bus
from local.bus.messages import (
    ConversationRequest,
    ConversationResult,
    GenerationToken,
    ModelUsed,
    ResponseGeneration,
)
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.generator.history import ConversationService
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ContentDelta, Delta, Done, Json, ModelInfo, Usage
from local.models.lease_messages import LeaseState
from local.models.leases import Leases

GRADE: list[Json] = [{"role": "user", "content": "Grade it."}]


class OneAtATime:
    """A model server with one place, whose background calls keep it until they are cancelled."""

    def __init__(self) -> None:
        self.place, self.grading, self.is_graded = asyncio.Lock(), 0, asyncio.Event()

    async def chat(self, model: str, messages: Sequence[Json], **_: Any) -> AsyncGenerator[Delta, None]:
        async with self.place:
            if messages is GRADE:
                self.grading += 1
                self.is_graded.set()
                await asyncio.Event().wait()
            yield ContentDelta("Yes.")
            yield Done(Usage(2, 1), model=model)

    async def show(self, model: str) -> ModelInfo:
        return ModelInfo(model, frozenset({"completion"}))

    async def load(self, model: str, options: Any) -> None:
        pass

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


async def test_a_users_turn_ends_a_background_call_and_goes_before_all_that_wait(stage: Any) -> None:
    model, leases = OneAtATime(), Leases()
    await stage.serve(Arbiter(ArbiterConfig()))
    config = GeneratorConfig(model="gemma", think=False, make_titles=False)
    await stage.serve(GeneratorAgent(config, model, ConversationService(stage.database)))

    async def grade() -> None:
        async with aclosing(model.chat("gemma", GRADE)) as stream:
            async for _ in stream:
                pass

    async def for_ever() -> None:
        while True:
            await leases.in_background("gemma", "grade", grade)

    async with Bus("critic", stage.hub.transport()) as bus, AsyncExitStack() as stack:
        await bus.ready()
        await stack.enter_async_context(leases.are_open(bus))
        tasks = [asyncio.create_task(for_ever()) for _ in range(2)]
        for query_id in ("q1", "q2"):
            await asyncio.wait_for(model.is_graded.wait(), 90)
            model.is_graded.clear()
            begun = model.grading
            await stage.frontend.ask("Is it so?", query_id, session=query_id)
            await stage.frontend.hears(GenerationToken, query_id=query_id)
            assert model.grading == begun
            await stage.frontend.hears(ResponseGeneration, query_id=query_id)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_what_background_calls_have_evicted_is_asked_for_again_for_one_token(stage: Any) -> None:
    model = stage.model
    await stage.serve(Arbiter(ArbiterConfig()))
    config = GeneratorConfig(model="gemma", think=False, make_titles=False)
    await stage.serve(GeneratorAgent(config, model, ConversationService(stage.database)))
    evicted = LeaseState(server="default", slots=1, restore="gemma")
    for query_id, incognito in (("q1", False), ("q2", True)):
        model.will_say("Yes.", to=query_id)
        await stage.frontend.ask(query_id, query_id, session=query_id, incognito=incognito)
        await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    model.will_say("Y", to="q1")
    await stage.frontend.bus.publish(evicted)
    await stage.frontend.hears(ModelUsed, purpose="restore")
    first, _, again = model.asked
    assert (again.messages, again.tools) == (first.messages, first.tools)  # nothing of the incognito conversation
    assert again.options == first.options | {"num_predict": 1}
    await stage.frontend.bus.request(ConversationRequest(verb="delete", key="q1"), ConversationResult, 15)
    await stage.frontend.bus.publish(evicted)
    model.will_say("Yes.", to="q3")
    await stage.frontend.ask("q3", "q3", session="q3")
    await stage.frontend.hears(ResponseGeneration, query_id="q3")
    assert len(model.asked) == 4
