"""Turns that are computed from the live copy of their query: nothing leaves before the journal has delivered it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from local.bus.envelope import Envelope, Trace
from local.bus.messages import QueryReceived
from local.generator import queue as speculations
from local.generator.output import TurnOutput
from local.models.chat import ThinkingDelta, ToolCall

Until = Callable[[Callable[[], object]], Awaitable[None]]
Asked = Callable[[int], Awaitable[None]]


def said(stage: Any, query_id: str) -> list[str]:
    """What the generator has said of a query."""
    mine = [envelope for envelope in stage.frontend.heard if envelope.sender == "generator"]
    return [envelope.subject for envelope in mine if envelope.correlation_id == query_id]


async def live(stage: Any, query: str, query_id: str, session: str = "s") -> Envelope:
    """A copy that no journal has heard and nobody sends again."""
    message = QueryReceived(query_id=query_id, query=query)
    envelope: Envelope = stage.frontend.bus.seal(message, Trace(query_id, None, session, "user"))
    await stage.frontend.bus.send(envelope)
    return envelope


@pytest.fixture
async def generator(stage: Any) -> Any:
    """One that is ready while there is no journal, so that nothing can be on record."""
    served = await stage.generator()
    await stage.no_journal()
    return served


@pytest.fixture
def asked(stage: Any, until: Until) -> Asked:
    """Wait until the model has been asked so many times."""
    return lambda times: until(lambda: len(stage.model.asked) == times)


async def asked_without_record(stage: Any, asked: Asked, *items: Any) -> asyncio.Task[Envelope]:
    """Ask while there is no journal; returns when the model has said everything that it will say."""
    stage.model.will_say(*items)
    asking = asyncio.create_task(stage.frontend.ask("Well?", "q1"))
    await asked(1)
    for _ in range(200):  # rounds of the loop, in which whatever is said too early would be heard
        await asyncio.sleep(0)
    return asking


async def test_the_model_is_asked_before_the_query_is_on_record_and_nobody_hears_of_it(
    stage: Any, generator: Any, asked: Asked
) -> None:
    asking = await asked_without_record(stage, asked, ThinkingDelta("Hm."), "Yes.")
    assert said(stage, "q1") == []
    await stage.journal()
    await asking
    response = await stage.end_of("q1")
    assert (response.status, response.thinking, response.answer) == ("answered", "Hm.", "Yes.")
    assert len(stage.model.asked) == 1
    order = ["query.accepted", "agent.transition", "generation.thinking", "generation.token", "agent.transition"]
    assert said(stage, "q1")[:5] == order


async def test_what_is_released_too_early_is_found(
    stage: Any, generator: Any, monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    """The check of the test above, with the fault planted that it is there for."""
    makes = TurnOutput.__init__

    def leaks(output: TurnOutput, *arguments: Any) -> None:
        makes(output, *arguments)
        output.release()

    monkeypatch.setattr(TurnOutput, "__init__", leaks)
    asking = await asked_without_record(stage, asked, "Yes.")
    assert "generation.token" in said(stage, "q1")
    asking.cancel()


async def test_a_tool_is_not_asked_before_the_query_and_its_step_are_on_record(
    stage: Any, dice: Any, asked: Asked
) -> None:
    await stage.generator()
    await stage.tool(dice)
    await stage.no_journal()
    asking = await asked_without_record(stage, asked, ToolCall("dice", {}))
    assert dice.rolls == [] and said(stage, "q1") == []
    stage.model.will_say("A 5.")
    await stage.journal()
    await asking
    assert (await stage.end_of("q1")).answer == "A 5."
    assert (len(stage.model.asked), dice.rolls) == (2, [6])


async def test_another_text_of_the_same_query_is_answered_by_itself(stage: Any, generator: Any, asked: Asked) -> None:
    stage.model.will_say("Of the first text.", to="First")
    stage.model.will_say("Of the second text.", to="Second")
    await live(stage, "First", "q1")
    await asked(1)
    await stage.journal()
    await stage.frontend.ask("Second", "q1")
    assert (await stage.end_of("q1")).answer == "Of the second text."
    assert [each.query for each in stage.model.asked] == ["First", "Second"]


async def test_queries_of_a_session_that_arrive_swapped_are_answered_as_they_are_on_record(
    stage: Any, generator: Any, asked: Asked
) -> None:
    for query, answer in (("First", "One."), ("Second", "Two."), ("Second", "Two.")):
        stage.model.will_say(answer, to=query)
    second = await live(stage, "Second", "q2")
    await asked(1)
    await stage.journal()
    await stage.frontend.ask("First", "q1")
    await stage.end_of("q1")
    await stage.frontend.ask("Second", "q2", envelope_id=second.id)
    assert (await stage.end_of("q2")).answer == "Two."
    assert [each.query for each in stage.model.asked] == ["Second", "First", "Second"]
    assert [message["content"] for message in stage.model.asked[-1].messages[1:]] == ["First", "One.", "Second"]


async def test_where_the_journal_stays_silent_the_call_is_closed_unseen(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have refused the query, because the disk is full."""
    monkeypatch.setattr(speculations, "SILENCE_SECONDS", 0.05)
    served = await stage.generator()
    await stage.no_journal()
    stage.model.will_say("So far", asyncio.Event())
    await live(stage, "Well?", "q1")
    await asyncio.wait_for(stage.model.closed_early.wait(), 90)
    assert said(stage, "q1") == []
    assert len(served.participant._speculations) == 0


async def test_a_cancelled_query_s_call_is_closed_unseen(stage: Any, generator: Any, asked: Asked) -> None:
    stage.model.will_say("So far", asyncio.Event())
    await live(stage, "Well?", "q1")
    await asked(1)
    cancelling = asyncio.create_task(stage.frontend.cancel("q1"))
    await asyncio.wait_for(stage.model.closed_early.wait(), 90)
    assert said(stage, "q1") == []
    cancelling.cancel()


async def test_of_a_session_that_is_answering_nothing_is_computed_ahead(stage: Any, asked: Asked) -> None:
    await stage.generator()
    may_go_on = asyncio.Event()
    stage.model.will_say(may_go_on, "One.", to="First")
    stage.model.will_say("Two.", to="Second")
    await stage.frontend.ask("First", "q1")
    await asked(1)
    await stage.frontend.ask("Second", "q2")
    assert len(stage.model.asked) == 1
    may_go_on.set()
    assert (await stage.end_of("q2")).answer == "Two."
    assert len(stage.model.asked) == 2


@pytest.mark.parametrize(
    "point",
    [
        "generator.adopted",
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("generator.heard_live", "generator.speculated")),
    ],
)
async def test_killed_before_the_first_release_its_successor_gives_the_one_answer(stage: Any, point: str) -> None:
    first = await stage.doomed_generator(point)
    for _ in range(2):
        stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await first.dead()
    before = said(stage, "q1")
    assert not any(subject.startswith("generation") for subject in before)
    await stage.generator()
    assert (await stage.end_of("q1")).answer == "Yes."
