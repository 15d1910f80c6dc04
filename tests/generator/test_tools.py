"""Tools that come, restart, leave, or fail while a conversation runs."""

import asyncio
from typing import Any

import pytest
from pydantic import Field

from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import (
    AgentTransition,
    BusDead,
    ChildStatus,
    ParticipantStatus,
    ResponseGeneration,
    ToolRequest,
    ToolSchema,
    ToolSchemaRequest,
)
from local.bus.security import Declaration, SenderGuard
from local.core.errors import RequestTimeout
from local.journal.messages import JournalEntries, JournalRead
from local.models.chat import ToolCall
from local.tools.tool import Tool, ToolSettings


async def answer(stage: Any, number: int) -> ResponseGeneration:
    """Ask question `number`; its response."""
    await stage.frontend.ask("Roll!", f"q{number}", session=None)
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=f"q{number}")
    return response


async def call_dice(stage: Any) -> Any:
    """One turn that calls the dice once; how the call ended."""
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("Done.")
    number = len(stage.model.asked)
    [record] = (await answer(stage, number)).tool_calls
    return record


async def test_a_tool_that_appears_between_two_calls_of_the_model_changes_nothing_in_that_turn(
    stage: Any, dice: Any
) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, ToolCall("dice", {}))
    stage.model.will_say("Done.")
    await stage.frontend.ask("Roll!", "q1")
    await stage.frontend.hears(AgentTransition, to_state="GENERATING")
    await stage.tool(dice)
    slow.set()
    [record] = (await stage.frontend.hears(ResponseGeneration)).tool_calls
    assert record.error is not None
    assert record.error.kind == "unknown_tool"  # the set offered is fixed for one call of the model
    assert [asked.tools for asked in stage.model.asked] == [[], []]  # a turn keeps its list


async def test_a_call_that_a_restarted_generator_repeats_is_known_to_its_living_tool_and_runs_once(
    stage: Any, dice: Any
) -> None:
    first = await stage.generator()
    await stage.tool(dice)
    dice.may_fall.clear()
    stage.model.will_say(ToolCall("dice", {}))
    await stage.frontend.ask("Roll!", "q1")
    await asyncio.wait_for(dice.started.wait(), 90)
    await first.kill()
    stage.model.will_say("A five.")
    await stage.generator()
    await stage.frontend.hears(ToolRequest, 2)
    dice.may_fall.set()
    [record] = (await stage.frontend.hears(ResponseGeneration)).tool_calls
    assert record.result == "a 5 of 6"
    assert dice.rolls == [6]
    one, two = stage.frontend.envelopes(ToolRequest)
    assert one.id == two.id


async def test_a_tool_that_may_not_say_its_results_is_not_offered(stage: Any, dice: Any) -> None:
    """Whoever describes a tool to the model is the one that answers its calls."""
    says = {"dice": Declaration(frozenset({"tool.schema", "tool.result.other", "participant.status"}))}
    generator = await stage.generator()
    generator.bus.guard = SenderGuard(says.get)
    await stage.tool(dice)
    dead = await stage.frontend.hears(BusDead)
    assert (dead.error.kind, dead.error.message) == ("refused_tool", "dice is not the tool dice")
    stage.model.will_say("Without.")
    await answer(stage, 1)
    assert stage.model.asked[0].tools == []


async def supervisor_says(stage: Any, dice: Any, state: str) -> None:
    """How the child is that the dice are, which call themselves otherwise."""
    child = ChildStatus(
        name=type(dice).__name__, kind="participant", state=state, pid=None, detail="exit status 1: no dice"
    )
    status = {"name": "supervisor", "kind": "supervisor", "pid": 1, "instance": "s", "state": "ready"}
    other = ChildStatus(name="proxy", kind="proxy", state="ready")
    children = (other,) if state == "gone" else (other, child)
    await stage.frontend.bus.publish(ParticipantStatus(**status, children=children))


async def test_a_call_of_a_tool_that_is_given_up_fails_at_once_and_says_why(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    await supervisor_says(stage, dice, "ready")
    assert (await call_dice(stage)).result == "a 5 of 6"
    await supervisor_says(stage, dice, "failed")
    record = await call_dice(stage)
    assert (record.error.kind, record.error.message) == (
        "unavailable", "dice gave no answer: its process cannot live (exit status 1: no dice)"
    )  # fmt: skip
    assert dice.rolls == [6]
    await supervisor_says(stage, dice, "restarting")  # it lives in a moment, and a call waits for that
    assert (await call_dice(stage)).result == "a 5 of 6"


async def test_a_tool_that_never_answers_is_a_timeout_the_model_reads(stage: Any) -> None:
    await stage.generator()
    seconds = -0.999  # and one more
    schema = ToolSchema(tool="void", description="Nothing.", parameters={}, safety="L0", timeout_seconds=seconds)
    await stage.frontend.bus.publish(schema)
    stage.model.will_say(ToolCall("void", {}))
    stage.model.will_say("Nothing came.")
    [record] = (await answer(stage, 1)).tool_calls
    assert record.error is not None
    assert (record.error.kind, record.error.message) == ("timeout", "void did not answer within 0.001 s")
    assert stage.model.asked[1].messages[-1]["content"] == "Error (timeout): void did not answer within 0.001 s"
    assert len(stage.frontend.of(AgentTransition, action="TOOL_TIMEOUT")) == 1


async def test_a_tool_that_does_not_say_how_long_it_may_take_gets_what_is_configured(stage: Any) -> None:
    class SilentSchema(Message):
        """What a tool in another language may leave out."""

        subject = ToolSchema.subject
        tool: str = "void"
        description: str = "Nothing."
        safety: str = "L0"
        parameters: dict[str, Any] = Field(default_factory=dict)

    served = await stage.generator(tool_timeout_seconds=0.25)
    await stage.frontend.bus.publish(SilentSchema())
    waited: list[float] = []

    async def request(message: Message, reply: type[Message], timeout: float, trace: Trace, **_: Any) -> Message:
        waited.append(timeout)
        raise RequestTimeout(message.routing_key, timeout)

    served.bus.request = request
    stage.model.will_say(ToolCall("void", {}))
    stage.model.will_say("Nothing came.")
    await answer(stage, 1)
    assert waited == [1.25]


async def test_a_tool_that_does_more_than_read_gives_the_turn_more_steps(stage: Any, dice: Any) -> None:
    class EraserTool(Tool):
        """Erase something."""

        name = "eraser"

        async def run(self) -> str:
            raise AssertionError("it is not called")

    await stage.generator(max_tool_iterations=1, max_acting_iterations=2)
    await stage.tool(dice)
    await stage.tool(EraserTool(ToolSettings()))
    for sides in (4, 6):
        stage.model.will_say(ToolCall("dice", {"sides": sides}))
    stage.model.will_say("A 3 and a 5.")
    response = await answer(stage, 1)
    assert [asked.tools for asked in stage.model.asked] == [["dice", "eraser"]] * 3
    assert response.usage.totals is not None and response.usage.totals.max_steps == 2
    assert "no more than 2 steps" in response.degraded[0]


async def test_a_tool_is_offered_from_when_it_is_heard_until_it_leaves_and_again_after_a_restart(
    stage: Any, dice: Any
) -> None:
    await stage.serve(dice)
    await stage.generator()
    await stage.frontend.hears(ToolSchemaRequest)
    await stage.frontend.hears(ToolSchema, 2)  # it was there first, and is asked what it is
    assert (await call_dice(stage)).result == "a 5 of 6"
    await next(served for served in stage._served if served.participant is dice).stop()
    await stage.frontend.hears(ParticipantStatus, name="dice", state="stopping")
    assert (await call_dice(stage)).error.kind == "unknown_tool"
    await stage.tool(type(dice)())
    assert (await call_dice(stage)).result == "a 5 of 6"
    assert [asked.tools for asked in stage.model.asked] == [["dice"], ["dice"], [], [], ["dice"], ["dice"]]


@pytest.mark.parametrize(
    ("effect", "kind", "state", "reason"),
    [
        ("read", "unavailable", "failed", "its process cannot live"),
        ("write", "outcome_unknown", "gone", "it was taken out of the settings"),
    ],
)
async def test_a_call_under_way_ends_when_its_tool_is_given_up_or_taken_out(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch, effect: str, kind: str, state: str, reason: str
) -> None:
    schema = dice.schema().model_copy(update={"effect": effect})
    monkeypatch.setattr(dice, "schema", lambda: schema)
    await stage.generator()
    served = await stage.tool(dice)
    await supervisor_says(stage, dice, "ready")
    dice.may_fall.clear()
    calling = asyncio.create_task(call_dice(stage))
    await asyncio.wait_for(dice.started.wait(), 90)
    await served.kill()
    await supervisor_says(stage, dice, state)
    record = await asyncio.wait_for(calling, 90)
    assert (record.error.kind, reason in record.error.message) == (kind, True)


async def test_a_tool_that_beats_but_was_never_introduced_is_asked_and_an_observer_is_not(stage: Any) -> None:
    await stage.generator()
    await stage.frontend.hears(ToolSchemaRequest)
    for name, kind in (("critic", "agent"), ("dice", "tool")):
        status = ParticipantStatus(name=name, kind=kind, pid=1, instance="i", state="ready")
        beat: Envelope = await stage.frontend.bus.publish(status)
    await stage.frontend.hears(ToolSchemaRequest, 2)
    assert [each.cause_id for each in stage.frontend.envelopes(ToolSchemaRequest)[1:]] == [beat.id]


async def test_the_text_of_a_tool_is_recorded_once_however_often_it_is_published(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    heard = len(stage.frontend.of(ToolSchema, tool="dice"))
    await stage.frontend.bus.publish(ToolSchemaRequest())
    await stage.frontend.hears(ToolSchema, heard + 1, tool="dice")
    await stage.frontend.bus.publish(ToolSchemaRequest())
    await stage.frontend.hears(ToolSchema, heard + 2, tool="dice")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(ResponseGeneration)  # by then the journal has what came before
    request = JournalRead(subjects=(ToolSchema.subject,))
    recorded = (await stage.frontend.bus.request(request, JournalEntries, 90)).entries
    assert len(recorded) == 1
