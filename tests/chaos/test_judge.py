"""The judge finds every kind of violation, and none where there is none."""

from __future__ import annotations

from itertools import islice

import pytest
from chaos_harness.history import Asked, Form, Outcome, Read
from chaos_harness.judge import Evidence, Fault, judge
from chaos_harness.questions import questions
from chaos_harness.sightings import Sighting


@pytest.fixture
def asked() -> list[Asked]:
    """Three queries of one session, each answered and read twice."""
    return [_answered(question) for question in islice(questions("s"), 3)]


@pytest.fixture
def effects(asked) -> list[str]:
    """The line of the one that has an effect."""
    return [each.question.text for each in asked if each.question.is_effect]


@pytest.fixture
def sessions(asked) -> dict[str, list[str]]:
    """The conversation."""
    return {"s": [each.question.text for each in asked]}


@pytest.fixture
def seen(asked) -> list[Sighting]:
    """What an observer got."""
    return [Sighting(each.question.query_id, "s", each.outcome.text) for each in asked]


@pytest.fixture
def found(asked, effects, sessions, seen):
    """The faults that the judge finds in all this, and whose they are."""
    return lambda: [(fault, whose) for fault, whose, _ in judge(Evidence(asked, effects, sessions, seen))]


def test_a_run_without_fault_has_none(found) -> None:
    assert found() == []


def test_an_accepted_query_without_outcome_is_lost(asked, sessions, seen, found) -> None:
    asked[2].reads.clear()
    del sessions["s"][2], seen[2]
    assert found() == [(Fault.LOST, "s-2")]


def test_a_query_that_was_never_accepted_is_lost_for_its_user_too(asked, sessions, seen, found) -> None:
    asked[2].reads.clear()
    asked[2].accepted_at = None
    del sessions["s"][2], seen[2]
    assert found() == [(Fault.LOST, "s-2")]


def test_an_accepted_query_must_not_be_unknown_later(asked, found) -> None:
    asked[0].forgotten_at.append(3.0)
    assert found() == [(Fault.FORGOTTEN, "s-0")]


def test_two_reads_that_differ_are_two_outcomes(asked, found) -> None:
    asked[0].reads.append(Read(Form.STREAM, Outcome("answered", "Something else about s-0."), 9.0))
    assert found() == [(Fault.TWO_OUTCOMES, "s-0")]


def test_an_answer_that_turns_into_a_failure_is_two_outcomes(asked, found) -> None:
    asked[0].reads.append(Read(Form.POLL, Outcome("failed", "gave_up"), 9.0))
    assert found() == [(Fault.TWO_OUTCOMES, "s-0")]


def test_a_failure_is_told_though_it_is_an_outcome(asked, sessions, seen, found) -> None:
    asked[0].reads[:] = [Read(Form.POLL, Outcome("failed", "gave_up"), 9.0)]
    del sessions["s"][0], seen[0]
    assert found() == [(Fault.FAILED, "s-0")]


def test_an_answer_from_a_conversation_with_a_hole_is_wrong(asked, seen, found) -> None:
    answer = Outcome("answered", "You told me: “My badge number is t-0.”")
    asked[2].reads[:] = [Read(Form.WHOLE, answer, 9.0)]
    seen[2] = seen[2]._replace(answer=answer.text)
    assert found() == [(Fault.WRONG_ANSWER, "s-2")]


def test_an_effect_that_happened_twice_is_found(effects, found) -> None:
    effects.append(effects[0])
    assert found() == [(Fault.EFFECT_TWICE, "Please stamp card s-1.")]


def test_an_effect_that_was_reported_and_did_not_happen_is_found(effects, found) -> None:
    effects.clear()
    assert found() == [(Fault.EFFECT_MISSING, "Please stamp card s-1.")]


@pytest.mark.parametrize("happened", [True, False])
def test_an_effect_that_is_honestly_in_doubt_may_or_may_not_have_happened(
    asked, effects, seen, found, happened
) -> None:
    doubt = Outcome("answered", "The tool said: “It may or may not have happened; it is not repeated.”")
    asked[1].reads[:] = [Read(Form.WHOLE, doubt, 9.0)]
    seen[1] = seen[1]._replace(answer=doubt.text)
    del effects[happened:]
    assert found() == []


def test_an_effect_that_nobody_asked_for_is_found(effects, found) -> None:
    effects.append("Please stamp card t-1.")
    assert found() == [(Fault.EFFECT_UNASKED, "Please stamp card t-1.")]


@pytest.mark.parametrize("change", [list.reverse, lambda turns: turns.append(turns[0]), lambda turns: turns.pop(1)])
def test_a_session_keeps_its_turns_in_order_each_once(sessions, found, change) -> None:
    change(sessions["s"])
    assert found() == [(Fault.OUT_OF_ORDER, "s")]


def test_an_answer_that_the_observer_has_not_seen_is_found(seen, found) -> None:
    del seen[1]
    assert found() == [(Fault.UNSEEN, "s-1")]


def test_an_observer_that_saw_two_answers_or_another_one_is_found(seen, found) -> None:
    seen.append(seen[0]._replace(answer="another"))
    seen[1] = seen[1]._replace(answer="another")
    assert found() == [(Fault.SEEN_DIFFERENTLY, "s-0"), (Fault.SEEN_DIFFERENTLY, "s-1")]


def test_an_observer_sees_a_session_in_order(seen, found) -> None:
    seen.reverse()
    assert found() == [(Fault.SEEN_OUT_OF_ORDER, "s")]


def _answered(question) -> Asked:
    outcome = Outcome("answered", f"I say: {question.expects}")
    asked = Asked(question, Form.WHOLE, 0.0, 0.5)
    asked.reads += [Read(Form.WHOLE, outcome, 1.0), Read(Form.POLL, outcome, 2.0)]
    return asked
