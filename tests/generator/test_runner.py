"""One turn on the bus and on the disk: which requests it makes, what it keeps, and how it goes on after a crash."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.message import ErrorInfo
from local.bus.messages import (
    AgentTransition,
    GenerationProgress,
    GenerationThinking,
    GenerationToken,
    GenerationWaiting,
    RecallScore,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
    ToolSchema,
)
from local.core.errors import StoreFenced, StoreFull
from local.generator.fitting import PromptFitter
from local.generator.history import ConversationService, NewTurn
from local.generator.output import TurnOutput
from local.generator.runner import TurnRunner
from local.generator.steps import ModelStep, PlannedCall, TurnInput, TurnLimits, parse_step
from local.generator.tool_calls import TurnContext
from local.generator.tool_list import TurnOffer
from local.generator.tool_registry import ToolRegistry
from local.generator.turn import Turn
from local.models.chat import ProgressDelta, RestartDelta, ThinkingDelta, ToolCall
from local.models.settings import Tier
from local.queries.view import QueryView

SECONDS = 90.0
ROLL = ToolSchema(tool="roll", description="Roll.", parameters={}, timeout_seconds=SECONDS)


class Record(ConversationService):
    """Tells of every result that is kept."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.kept: asyncio.Queue[asyncio.Future[object]] = asyncio.Queue()

    def keep_result(self, query_id: str, call_id: str, body: str) -> asyncio.Future[object]:
        noted = super().keep_result(query_id, call_id, body)
        self.kept.put_nowait(noted)
        return noted


class Process:
    """A generator's process as far as one turn is concerned."""

    def __init__(self, bus: Bus, model: Any, record: Record) -> None:
        self.bus, self.record = bus, record
        context = PromptFitter(model, "gemma", 32_000, record)
        tools = ToolRegistry()
        tools.announce(ROLL, "roll", "i", 0.0)
        self._context = TurnContext(model, context, tools, "gemma", {}, SECONDS, clock=lambda: 0.0)
        self._task: asyncio.Task[ResponseGeneration] | None = None

    async def run(self) -> ResponseGeneration:
        """Run turn q1 from its last stored step to its end."""
        await self.record.accept(NewTurn("q1", "s", None, "e", "Roll!", "{}"))
        steps = [parse_step(body) for body in await self.record.steps("q1")]
        turn = Turn(TurnInput("q1", "A", "Roll!", (), False, TurnLimits()), steps)
        output = TurnOutput(self.bus, self.record, Trace("q1"), "generator", "q1", "A", 1)
        self.runner = TurnRunner(turn, self._context, output, None)
        return await self.runner.run()

    def offers(self, offer: TurnOffer) -> None:
        """What its model is offered from now on."""
        self._context = replace(self._context, offer=offer)

    def start(self) -> asyncio.Task[ResponseGeneration]:
        self._task = asyncio.create_task(self.run())
        return self._task

    async def kill(self) -> None:
        """What was not on the disk is lost with it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


@pytest.fixture
async def process(stage: Any, tmp_path: Path) -> AsyncIterator[Callable[[], Any]]:
    """Starts processes on one file; the earlier ones never close it, as if they were killed."""
    async with AsyncExitStack() as stack:

        async def start() -> Process:
            bus = await stack.enter_async_context(Bus("generator", stage.hub.transport()))
            await bus.ready()
            record = await stack.enter_async_context(Record(tmp_path / "turns.db"))
            made = Process(bus, stage.model, record)
            stack.push_async_callback(made.kill)
            return made

        yield start


RECALLED = (RecallScore(engram_id="e1", relevance=0.4, similarity=0.5, parts={"words": 0.3}),)


async def requests(stage: Any, times: int) -> list[Envelope]:
    """The first requests on the bus, as soon as there are so many."""
    await stage.frontend.hears(ToolRequest, times)
    envelopes: list[Envelope] = stage.frontend.envelopes(ToolRequest)
    return envelopes[:times]


async def answer(stage: Any, envelope: Envelope, *, call_id: str = "") -> None:
    """Answer as the tool would, in words that name the call."""
    asked = ToolRequest.decode(envelope.payload).call_id
    result = ToolResult(
        query_id="q1", call_id=call_id or asked, tool="roll", result=f"result of {asked}", recalled=RECALLED
    )
    await stage.frontend.bus.publish(result, envelope.trace(), in_reply_to=envelope.id)


def call_ids(envelopes: list[Envelope]) -> list[str]:
    return [ToolRequest.decode(envelope.payload).call_id for envelope in envelopes]


async def test_what_was_said_before_the_model_server_died_is_withdrawn_and_in_no_record(
    stage: Any, process: Callable[[], Any]
) -> None:
    gone = RestartDelta("it stopped in the middle of an answer, which was begun again")
    read_on = asyncio.Event()
    stage.model.will_say(ThinkingDelta("Hm."), "It is Be", ToolCall("roll", {}), gone, read_on, "It is Rome.")
    running = await process()
    task = running.start()
    waiting = await stage.frontend.hears(GenerationWaiting)
    assert (waiting.reason, waiting.attempt) == (gone.note, 2)
    view, kinds = QueryView("q1"), list[str]()
    for message in [*stage.frontend.of(GenerationThinking), *stage.frontend.of(GenerationToken), waiting]:
        kinds += [news.kind for news in view.receive(message, stage.frontend.heard[0]) or ()]
    assert kinds[-2:] == ["snapshot", "waiting"]
    assert (view.answer, view.thinking) == ("", "")
    read_on.set()
    response = await asyncio.wait_for(task, SECONDS)
    assert (response.answer, response.thinking, response.tool_calls) == ("It is Rome.", "", ())
    assert response.degraded == (gone.note,)
    assert {token.attempt for token in stage.frontend.of(GenerationToken) if "Rome" in token.text} == {2}


async def test_how_far_the_prompt_is_read_is_told_a_few_times_a_second_and_never_of_a_short_one(
    stage: Any, process: Callable[[], Any]
) -> None:
    short, long = ProgressDelta(0, 30), [ProgressDelta(done, 9000) for done in range(0, 9000, 64)]
    stage.model.will_say(short, *long, "It is Rome.")
    running = await process()
    response = await asyncio.wait_for(running.start(), SECONDS)
    told = stage.frontend.of(GenerationProgress)
    assert response.answer == "It is Rome."
    assert told and {each.total for each in told} == {9000}
    assert len(told) < len(long) / 2


LIGHTS = ('{"na', 'me": "turn_on_', 'lights", "argu', 'ments": {"a": {}}', "}")


def said(stage: Any) -> str:
    return "".join(token.text for token in stage.frontend.of(GenerationToken))


async def test_a_call_that_is_written_as_text_is_shown_to_nobody_and_one_of_no_tool_is_answered(
    stage: Any, process: Callable[[], Any]
) -> None:
    stage.model.will_say("I do that.\n", *LIGHTS)
    stage.model.will_say("I cannot do that.")
    running = await process()
    response = await asyncio.wait_for(running.start(), SECONDS)
    assert (response.status, response.answer) == ("answered", "I cannot do that.")
    assert said(stage) == "I do that.\nI cannot do that."
    [record] = response.tool_calls
    assert record.error is not None and (record.tool, record.error.kind) == ("turn_on_lights", "unknown_tool")


@pytest.mark.parametrize(("tier", "heard"), [(Tier.SMALL, 2), (Tier.LARGE, 9)])
async def test_a_small_model_that_writes_a_call_again_and_again_is_not_heard_to_its_end(
    stage: Any, process: Callable[[], Any], tier: Tier, heard: int
) -> None:
    stage.model.will_say(*(part for _ in range(9) for part in (*LIGHTS, "\n")))
    stage.model.will_say("I cannot do that.")
    running = await process()
    running.offers(TurnOffer(tier=tier))
    response = await asyncio.wait_for(running.start(), SECONDS)
    assert (response.status, response.answer, said(stage)) == ("answered", "I cannot do that.", "I cannot do that.")
    assert len(response.tool_calls) == heard


async def test_half_a_call_is_not_the_answer_of_a_turn_that_was_stopped(stage: Any, process: Callable[[], Any]) -> None:
    stage.model.will_say("Well.\n", LIGHTS[0], LIGHTS[1], asyncio.Event())
    running = await process()
    task = running.start()
    await stage.frontend.hears(GenerationToken)
    running.runner.cancel()
    response = await asyncio.wait_for(task, SECONDS)
    assert response.status == "cancelled" and "{" not in response.answer


async def test_a_result_that_was_there_when_the_process_was_killed_is_not_asked_for_again(
    stage: Any, process: Callable[[], Any]
) -> None:
    stage.model.will_say(ToolCall("roll", {"n": 1}), ToolCall("roll", {"n": 2}), ToolCall("roll", {"n": 3}))
    stage.model.will_say("Done.")
    first = await process()
    first.start()
    asked = await requests(stage, 3)
    await answer(stage, asked[1])
    await asyncio.wait_for(await asyncio.wait_for(first.record.kept.get(), SECONDS), SECONDS)
    await first.kill()

    successor = await process()
    ending = successor.start()
    again = (await requests(stage, 5))[3:]
    assert call_ids(again) == ["q1:0:0", "q1:0:2"]
    assert {envelope.id for envelope in again} == {asked[0].id, asked[2].id}
    for envelope in again:
        await answer(stage, envelope)
    response = await asyncio.wait_for(ending, SECONDS)
    assert [record.result for record in response.tool_calls] == [f"result of q1:0:{index}" for index in range(3)]
    assert [record.recalled for record in response.tool_calls] == [RECALLED] * 3
    assert len(stage.model.asked) == 2
    assert await successor.record.results("q1") == []


async def test_a_result_of_another_call_is_no_answer_and_counted(stage: Any, process: Callable[[], Any]) -> None:
    stage.model.will_say(ToolCall("roll", {}))
    stage.model.will_say("Done.")
    running = await process()
    ending = running.start()
    await answer(stage, (await requests(stage, 1))[0], call_id="q1:7:0")
    [record] = (await asyncio.wait_for(ending, SECONDS)).tool_calls
    message = "roll gave no answer: the answer to call q1:0:0 is a result of call q1:7:0"
    assert (record.result, record.error) == (None, ErrorInfo(kind="malformed", message=message))
    assert running.bus.counters["malformed"] == 1


async def test_a_process_that_was_replaced_leaves_its_turn_to_the_successor(
    stage: Any, process: Callable[[], Any]
) -> None:
    thawed = asyncio.Event()
    stage.model.will_say("Do", thawed, "ne.")
    frozen = await process()
    ending = frozen.start()
    await stage.frontend.hears(GenerationToken)
    successor = await process()
    thawed.set()
    with pytest.raises(StoreFenced):
        await asyncio.wait_for(ending, SECONDS)
    stage.model.will_say("Done.")
    assert (await asyncio.wait_for(successor.run(), SECONDS)).answer == "Done."
    assert stage.frontend.of(AgentTransition, action="FAIL") == []


CALL = ToolCall("roll", {})
STEP = ModelStep(content="", calls=(PlannedCall(call_id="q1:0:0", tool="roll", args={}),))


@pytest.mark.parametrize(
    ("method", "steps", "said_before", "said_then"),
    [
        ("add_steps", [], [CALL], [CALL, "Done."]),
        ("finish", [], ["Done."], ["Done."]),
        ("results", [STEP.model_dump_json()], [], ["Done."]),
    ],
)
async def test_a_turn_that_cannot_be_stored_is_left_open_and_ends_when_it_is_run_again(
    stage: Any,
    process: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    steps: list[str],
    said_before: list[Any],
    said_then: list[Any],
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise StoreFull("turns.db: the disk is full")

    for said in [*said_before, *said_then]:
        stage.model.will_say(said)
    running = await process()
    await running.record.add_steps("q1", 0, steps)
    with monkeypatch.context() as patch:
        patch.setattr(running.record, method, fails)
        with pytest.raises(StoreFull):
            await asyncio.wait_for(running.run(), SECONDS)
    stored = await running.record.turn("q1")
    assert (stored.status, stored.outcome) == ("open", None)

    ending = running.start()
    if method != "finish":
        await answer(stage, (await requests(stage, 1))[0])
    assert (await asyncio.wait_for(ending, SECONDS)).answer == "Done."
    assert (await running.record.turn("q1")).status == "answered"


async def test_each_call_of_the_model_is_in_the_usage_with_its_times_also_one_that_was_cut_off(
    stage: Any, process: Callable[[], Any]
) -> None:
    stage.model.will_say(ToolCall("roll", {"n": 1}))
    stage.model.will_say("It ", asyncio.Event())
    running = await process()
    task = running.start()
    await answer(stage, (await requests(stage, 1))[0])
    await stage.frontend.hears(GenerationToken)
    running.runner.cancel()
    first, second = (await asyncio.wait_for(task, SECONDS)).usage.steps
    assert first.started <= first.first_token <= first.ended <= second.started <= second.first_token <= second.ended
