"""Two answers being compared: those of two respondents, and two texts that a model wants compared."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.messages import AgentTransition, QueryCancel
from local.core.errors import ModelError
from local.critic.messages import ComparisonRequest, ComparisonResult, CritiqueResult, PairwiseResult
from local.models.lease_messages import LeaseClaim, LeaseState
from local.models.leases import Leases

SECONDS = 20.0
REQUEST = ComparisonRequest(question="How deep is it?", answer_a="1308 metres.", answer_b="Very.")


async def both_answered(critics: Any, answer_a: str = "1308 metres.", answer_b: str = "Very.", **b: Any) -> None:
    await critics.answered(answer_a)
    await critics.answered(answer_b, respondent_id="B", **b)


@pytest.mark.parametrize(
    ("said", "winner", "consistent"),
    [(("A", "B"), "A", True), (("B", "A"), "B", True), (("A", "A"), "tie", False), (("B", "B"), "tie", False)],
)
async def test_the_winner_is_the_respondent_that_the_judge_prefers_in_both_orders(
    critics: Any, said: tuple[str, str], winner: str, consistent: bool
) -> None:
    for letter in said:
        critics.model.will_say(f"It says more. [RESULT] {letter}")
    await critics.serve(grade=False)
    await both_answered(critics)
    found = await critics.door.hears(PairwiseResult, query_id="q")
    assert (found.winner, found.order_consistent, found.status) == (winner, consistent, "graded")
    assert found.session_id == "session of q"
    first, second = (asked.query for asked in critics.model.asked)
    assert first.index("1308 metres.") < first.index("Very.")
    assert second.index("Very.") < second.index("1308 metres.")


async def test_both_answers_are_graded_and_then_compared_with_every_step_told(critics: Any) -> None:
    for words in ("Vague. [RESULT] 2", "Right. [RESULT] 5", "More. [RESULT] A", "More. [RESULT] B"):
        critics.model.will_say(words)
    critic = await critics.serve()
    await both_answered(critics)
    assert (await critics.door.hears(PairwiseResult)).winner == "A"
    scores = {graded.respondent_id: graded.score for graded in critics.door.of(CritiqueResult)}
    assert scores == {"A": 5, "B": 2}
    await critics.door.hears(AgentTransition, 3, to_state="IDLE")
    told = [step.to_state for step in critics.door.of(AgentTransition, respondent_id="B")]
    assert told == ["GRADING", "PUBLISHING", "IDLE", "COMPARING", "PUBLISHING", "IDLE"]
    details = critic.participant.details()
    assert (details["order_consistency"], details["longer_wins"]) == ("100%", "100%")


@pytest.mark.parametrize("fault", ["a_failed", "b_failed", "b_cancelled", "a_missing"])
async def test_there_is_no_comparison_unless_both_have_answered(critics: Any, fault: str) -> None:
    await critics.serve(grade=False)
    if fault != "a_missing":
        await critics.answered(status="failed" if fault == "a_failed" else "answered")
    status = {"b_failed": "failed", "b_cancelled": "cancelled"}.get(fault, "answered")
    await critics.answered(respondent_id="B", status=status)
    await critics.done(1 if fault == "a_missing" else 2)
    assert critics.model.asked == []
    assert critics.door.of(PairwiseResult) == []


@pytest.mark.parametrize(("model_b", "self_judged"), [("judge", True), ("other", False)])
async def test_a_judge_that_has_written_one_of_the_two_is_marked(critics: Any, model_b: str, self_judged: bool) -> None:
    for letter in "AB":
        critics.model.will_say(f"More. [RESULT] {letter}")
    await critics.serve(grade=False)
    await both_answered(critics, model=model_b)
    assert (await critics.door.hears(PairwiseResult)).self_judged is self_judged


async def test_an_order_without_a_verdict_is_no_tie_but_unparsed(critics: Any) -> None:
    for words in ("More. [RESULT] A", "?", "?", "?"):
        critics.model.will_say(words)
    await critics.serve(grade=False)
    await both_answered(critics)
    found = await critics.door.hears(PairwiseResult)
    assert (found.winner, found.order_consistent, found.status) == (None, None, "unparsed")


async def test_a_judge_that_cannot_be_asked_is_told(critics: Any) -> None:
    critics.model.will_say(ModelError("ollama pull judge", kind="model_missing"))
    await critics.serve(grade=False)
    await both_answered(critics)
    found = await critics.door.hears(PairwiseResult)
    assert (found.winner, found.status, found.feedback) == (None, "failed", "ollama pull judge")


async def test_comparing_can_be_switched_off(critics: Any) -> None:
    await critics.serve(grade=False, compare=False)
    await both_answered(critics)
    await critics.done(2)
    assert critics.model.asked == []


async def compared(critics: Any, request: ComparisonRequest = REQUEST) -> ComparisonResult:
    result: ComparisonResult = await critics.door.bus.request(request, ComparisonResult, SECONDS, Trace("q"))
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
    await critics.door.until(lambda: critics.model.asked)
    leases = Leases()
    async with Bus("generator", critics.stage.hub.transport()) as bus, AsyncExitStack() as stack:
        await bus.ready()
        await stack.enter_async_context(leases.are_open(bus))
        with leases.users_turn("gemma"):
            await critics.door.until(lambda: any(state.turns for state in critics.door.of(LeaseState)))
            assert (await compared(critics)).winner == "A"
            assert critics.door.of(CritiqueResult) == []
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
            await critics.door.until(lambda: any(s.turns and s.waiting for s in critics.door.of(LeaseState)))
            assert critics.model.asked == []
            assert not any(claim.turns for claim in critics.door.of(LeaseClaim) if claim.leases)
        assert (await asking).winner == "A"
    assert critic.participant.figures()["answers_compared"] == 1


async def test_cancelling_the_query_ends_the_comparison_that_it_wanted(critics: Any) -> None:
    critics.model.will_say(asyncio.Event())
    await critics.serve()
    asking = asyncio.create_task(compared(critics))
    await critics.door.until(lambda: critics.model.asked)
    await critics.door.bus.publish(QueryCancel(query_id="q"), Trace("q"))
    result = await asking
    assert result.error is not None and result.error.kind == "cancelled"
    assert critics.model.closed_early.is_set()


@pytest.mark.parametrize(
    ("words", "kind"),
    [(("?", "?", "?"), "unparsed"), ((ModelError("no", kind="model_missing"),), "model_missing")],
)
async def test_a_comparison_that_cannot_be_made_says_why(critics: Any, words: tuple[Any, ...], kind: str) -> None:
    for item in words:
        critics.model.will_say(item)
    critic = await critics.serve()
    result = await compared(critics)
    assert (result.winner, result.error.kind if result.error else None) == (None, kind)
    assert critic.participant.details()["model"] == "judge"
