"""Two answers being compared: those of two respondents, and two texts that a model wants compared."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.messages import AgentTransition, QueryCancel
from local.core.errors import ModelError
from local.critic.messages import ComparisonRequest, ComparisonResult, CritiqueResult, PairwiseResult
from local.models.lease_messages import LeaseClaim, LeaseState
from local.models.leases import Leases

SECONDS = 90.0
REQUEST = ComparisonRequest(question="How deep is it?", answer_a="1308 metres.", answer_b="Very.")


async def both_answered(critics: Any) -> None:
    await critics.answered("1308 metres.")
    await critics.answered("Very.", respondent_id="B")


async def test_both_answers_are_graded_and_then_compared_with_every_step_told(critics: Any) -> None:
    for words in ("Right. [RESULT] 5", "Vague. [RESULT] 2", "More. [RESULT] A", "More. [RESULT] B"):
        critics.model.will_say(words)
    critic = await critics.serve()
    await critics.answered("1308 metres.")
    await critics.critique()
    await critics.answered("Very.", respondent_id="B")
    assert (await critics.frontend.hears(PairwiseResult)).winner == "A"
    scores = {graded.respondent_id: graded.score for graded in critics.frontend.of(CritiqueResult)}
    assert scores == {"A": 5, "B": 2}
    await critics.frontend.hears(AgentTransition, 3, to_state="IDLE")
    told = [step.to_state for step in critics.frontend.of(AgentTransition, respondent_id="B")]
    assert told == ["GRADING", "PUBLISHING", "IDLE", "COMPARING", "PUBLISHING", "IDLE"]
    details = critic.participant.details()
    assert (details["order_consistency"], details["longer_wins"]) == ("100%", "100%")


async def compared(critics: Any, request: ComparisonRequest = REQUEST) -> ComparisonResult:
    result: ComparisonResult = await critics.frontend.bus.request(request, ComparisonResult, SECONDS, Trace("q"))
    return result


async def test_a_model_can_have_two_texts_compared(critics: Any) -> None:
    for letter in "BA":
        critics.model.will_say(f"It is a number. [RESULT] {letter}")
    await critics.serve()
    result = await compared(critics)
    assert (result.winner, result.order_consistent, result.feedback) == ("B", True, "It is a number.")
    assert (result.judge, result.error) == ("judge", None)


async def test_a_comparison_that_a_turn_waits_for_does_not_wait_for_the_turn_to_end(critics: Any) -> None:
    critics.model.will_say(asyncio.Event())  # a grade that is under way
    for words in ("More. [RESULT] A", "More. [RESULT] B", "Right. [RESULT] 5"):
        critics.model.will_say(words)
    await critics.serve()
    await critics.answered(query_id="earlier")
    await critics.frontend.until(lambda: critics.model.asked)
    leases = Leases()
    async with Bus("generator", critics.stage.hub.transport()) as bus, AsyncExitStack() as stack:
        await bus.ready()
        await stack.enter_async_context(leases.are_open(bus))
        with leases.users_turn("gemma"):
            await critics.frontend.until(lambda: any(state.turns for state in critics.frontend.of(LeaseState)))
            assert (await compared(critics)).winner == "A"
            assert critics.frontend.of(CritiqueResult) == []
        assert (await critics.critique("earlier")).score == 5


async def test_a_comparison_that_the_second_respondent_wants_lets_a_users_turn_go_first(critics: Any) -> None:
    for words in ("More. [RESULT] A", "More. [RESULT] B"):
        critics.model.will_say(words)
    critic = await critics.serve()
    leases = Leases()
    async with Bus("generator", critics.stage.hub.transport()) as bus, AsyncExitStack() as stack:
        await bus.ready()
        await stack.enter_async_context(leases.are_open(bus))
        with leases.users_turn("gemma"):
            of_b = REQUEST.model_copy(update={"respondent_id": "B"})
            asking = asyncio.create_task(compared(critics, of_b))
            await critics.frontend.until(lambda: any(s.turns and s.waiting for s in critics.frontend.of(LeaseState)))
            assert critics.model.asked == []
            assert not any(claim.turns for claim in critics.frontend.of(LeaseClaim) if claim.leases)
        assert (await asking).winner == "A"
    assert critic.participant.metrics()["answers_compared"] == 1


async def test_cancelling_the_query_ends_the_comparison_that_it_wanted(critics: Any) -> None:
    critics.model.will_say(asyncio.Event())
    await critics.serve()
    asking = asyncio.create_task(compared(critics))
    await critics.frontend.until(lambda: critics.model.asked)
    await critics.frontend.bus.publish(QueryCancel(query_id="q"), Trace("q"))
    result = await asking
    assert result.error is not None and result.error.kind == "cancelled"
    assert critics.model.closed_early.is_set()


async def test_there_is_no_comparison_unless_both_have_answered_and_it_is_switched_on(critics: Any) -> None:
    served = await critics.serve(grade=False)
    for number, (status, status_b) in enumerate((("failed", "answered"), ("answered", "failed"), ("", "answered"))):
        if status:
            await critics.answered(query_id=f"q{number}", status=status)
        await critics.answered(query_id=f"q{number}", respondent_id="B", status=status_b)
    await critics.done(5)
    await served.stop()
    await critics.serve(grade=False, compare=False)
    await both_answered(critics)
    await critics.done(7)
    assert (critics.model.asked, critics.frontend.of(PairwiseResult)) == ([], [])


async def test_a_comparison_that_cannot_be_made_says_why(critics: Any) -> None:
    for _ in range(2):
        critics.model.will_say(ModelError("ollama pull judge", kind="model_missing"))
    await critics.serve(grade=False)
    await both_answered(critics)
    found = await critics.frontend.hears(PairwiseResult)
    assert (found.winner, found.status, found.feedback) == (None, "failed", "ollama pull judge")
    result = await compared(critics)
    assert (result.winner, result.error.kind if result.error else None) == (None, "model_missing")
