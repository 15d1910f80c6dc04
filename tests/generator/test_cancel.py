"""Cancelling a query, whatever it is doing."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

from local.bus.messages import (
    AgentTransition,
    GenerationThinking,
    GenerationToken,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    ToolResult,
)
from local.generator.agent import CANCELS
from local.journal.messages import JournalAck
from local.models.chat import ThinkingDelta, ToolCall


async def test_while_the_model_thinks_its_stream_is_closed_and_the_next_turn_sees_what_was_said(stage: Any) -> None:
    await stage.generator()
    other = asyncio.Event()
    stage.model.will_say(ThinkingDelta("green"), other, "Done.", to="other")
    stage.model.will_say(ThinkingDelta("Hm."), "So far", asyncio.Event(), to="Well?")
    await stage.frontend.ask("other", "other", session="green")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    await stage.frontend.hears(GenerationThinking, 2)
    await stage.frontend.cancel("q1")
    response = await stage.frontend.hears(ResponseGeneration)
    assert (response.status, response.answer, response.thinking) == ("cancelled", "So far", "Hm.")
    assert stage.model.closed_early.is_set()
    assert len(stage.frontend.of(AgentTransition, action="CANCEL", to_state="PUBLISHING")) == 1
    other.set()
    assert (await stage.frontend.hears(ResponseGeneration, query_id="other")).answer == "Done."
    stage.model.will_say("On.")
    await stage.frontend.ask("Go on!", "q2")
    await stage.frontend.hears(ResponseGeneration, query_id="q2")
    assert [message["content"] for message in stage.model.asked[-1].messages[1:]] == ["Well?", "So far", "Go on!"]


async def test_while_a_tool_runs_the_tool_is_stopped_too(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    dice.may_fall.clear()
    stage.model.will_say("I roll.", ToolCall("dice", {}))
    stage.model.will_say(asyncio.Event())  # the tool may hear of it first, and be done before the turn is
    await stage.frontend.ask("Roll!", "q1")
    await asyncio.wait_for(dice.started.wait(), 90)
    await stage.frontend.cancel("q1")
    response = await stage.frontend.hears(ResponseGeneration)
    assert (response.status, response.answer) == ("cancelled", "I roll.")
    assert [(call.tool, call.error.kind) for call in response.tool_calls] == [("dice", "cancelled")]
    assert (await stage.frontend.hears(ToolResult)).error.kind == "cancelled"
    assert dice.cancelled.is_set()


async def test_while_it_waits_in_line_it_ends_as_failed_and_leaves_no_history(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "One.", to="first")
    stage.model.will_say("Three.", to="third")
    await stage.frontend.ask("first", "q1")
    await stage.frontend.ask("second", "q2")
    await stage.frontend.hears(QueryAccepted, query_id="q2")
    await stage.frontend.cancel("q2")
    failed = await stage.frontend.hears(QueryFailed)
    assert (failed.query_id, failed.error.kind) == ("q2", "cancelled")
    slow.set()
    await stage.frontend.hears(ResponseGeneration)
    await stage.frontend.ask("third", "q3")
    await stage.frontend.hears(ResponseGeneration, 2)
    assert [message["content"] for message in stage.model.asked[-1].messages[1:]] == ["first", "One.", "third"]
    await stage.frontend.ask("second", "q2")
    assert await stage.frontend.hears(QueryFailed, 2) == failed


async def test_sent_together_with_its_query_it_is_not_lost(stage: Any) -> None:
    """Cancellation and query are two subjects: nobody promises that they are handled in the order of sending."""
    await stage.generator()
    for number in range(6):
        for _ in range(2):  # it may be asked ahead, and again
            stage.model.will_say(asyncio.Event())
        both = [stage.frontend.ask("Well?", f"q{number}", session=None), stage.frontend.cancel(f"q{number}")]
        await asyncio.gather(*(both if number % 2 else reversed(both)))
    for number in range(6):
        end = await stage.end_of(f"q{number}")
        assert (end.error.kind if isinstance(end, QueryFailed) else end.status) == "cancelled"


async def test_before_its_query_it_is_remembered_and_after_the_end_it_changes_nothing(stage: Any) -> None:
    await stage.generator()
    await stage.frontend.cancel("early")
    await stage.frontend.ask("Well?", "early")
    assert (await stage.frontend.hears(QueryFailed)).error.kind == "cancelled"
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(ResponseGeneration)
    await stage.frontend.cancel("q1")
    await stage.frontend.ask("Well?", "q1")
    assert (await stage.frontend.hears(ResponseGeneration, 2)).status == "answered"
    assert stage.frontend.of(QueryFailed, query_id="q1") == []


async def test_nothing_is_remembered_of_it_once_its_query_has_ended(stage: Any) -> None:
    generator = await stage.generator()
    stage.model.will_say("Yes.", to="ended")
    stage.model.will_say("So far", asyncio.Event(), to="running")
    await stage.frontend.ask("ended", "q1")
    await stage.end_of("q1")
    await stage.frontend.ask("running", "q2")
    await stage.frontend.hears(AgentTransition, query_id="q2", to_state="GENERATING")
    await stage.frontend.ask("waiting", "q3")
    await stage.frontend.hears(QueryAccepted, query_id="q3")
    for query_id in ("q1", "q3", "q2"):
        await stage.frontend.cancel(query_id)
    for query_id in ("q2", "q3"):
        await stage.end_of(query_id)
    await stage.frontend.until(
        lambda: sum(len(ack.numbers) for ack in stage.frontend.of(JournalAck, consumer=CANCELS)) == 3
    )
    await generator.stop()
    with closing(sqlite3.connect(stage.database)) as database:
        assert database.execute("SELECT * FROM cancels").fetchall() == []
