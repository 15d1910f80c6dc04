"""Two answers compared in both orders, and the figures that are kept of it."""

from __future__ import annotations

import pytest

from local.services.judging.figures import Figures
from local.services.judging.judgement import Comparison, ComparisonOutcome, JudgingStatus, Verdict, Winner
from local.services.judging.profiles import PROFILES
from local.services.judging.prompt import Pair
from local.services.judging.rubric import Rubric

PAIR = Pair("Capital of France?", "It is Paris, of course.", "Rome.")


def compared(rubric: Rubric, *replies: str, pair: Pair = PAIR) -> ComparisonOutcome:
    comparison = Comparison(PROFILES["prometheus2"], pair, rubric)
    for reply in replies:
        assert comparison.outcome is None
        comparison.hear(reply)
    assert comparison.ask is None
    assert comparison.outcome is not None
    return comparison.outcome


@pytest.mark.parametrize(
    ("forward", "backward", "winner", "consistent"),
    [
        ("A", "B", Winner.A, True),
        ("B", "A", Winner.B, True),
        ("A", "A", Winner.TIE, False),
        ("B", "B", Winner.TIE, False),
    ],
)
def test_a_winner_is_one_that_wins_in_both_orders(
    forward: str, backward: str, winner: Winner, consistent: bool, rubric: Rubric
) -> None:
    outcome = compared(rubric, f"First. [RESULT] {forward}", f"Second. [RESULT] {backward}")

    assert outcome == ComparisonOutcome(JudgingStatus.GRADED, winner, consistent, "First.", replies=2, unread=0)


def test_the_second_question_shows_the_answers_in_the_other_order(rubric: Rubric) -> None:
    comparison = Comparison(PROFILES["prometheus2"], PAIR, rubric)
    assert comparison.ask is not None
    first = comparison.ask.prompt.user
    comparison.hear("[RESULT] A")
    assert comparison.ask is not None
    second = comparison.ask.prompt.user

    assert first.index("Paris") < first.index("Rome")
    assert second.index("Rome") < second.index("Paris")


def test_each_order_has_its_own_retries(rubric: Rubric) -> None:
    outcome = compared(rubric, "?", "?", "[RESULT] A", "?", "?", "[RESULT] B")

    assert (outcome.winner, outcome.replies, outcome.unread) == (Winner.A, 6, 4)


def test_an_order_without_a_verdict_ends_it_without_a_winner(rubric: Rubric) -> None:
    assert compared(rubric, "?", "?", "both") == ComparisonOutcome(
        JudgingStatus.UNPARSED, None, None, "both", replies=3, unread=3
    )
    assert compared(rubric, "[RESULT] A", "?", "?", "no").order_consistent is None


def test_the_figures_tell_parse_failures_consistency_and_how_often_the_longer_won(rubric: Rubric) -> None:
    figures = Figures()
    assert figures.shares() == {"parse_failures": None, "order_consistency": None, "longer_wins": None}

    same_length = Pair("?", "one", "two")
    figures.count_verdict(Verdict(JudgingStatus.GRADED, 4, None, "", replies=2, unread=1))
    figures.count_verdict(Verdict(JudgingStatus.UNPARSED, None, None, "", replies=3, unread=3))
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] B"), PAIR)
    figures.count_outcome(compared(rubric, "[RESULT] B", "[RESULT] A"), PAIR)
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] A"), PAIR)
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] B", pair=same_length), same_length)
    figures.count_outcome(compared(rubric, "?", "?", "?"), PAIR)

    assert (figures.graded, figures.unparsed, figures.comparisons) == (1, 2, 4)
    assert figures.shares() == {"parse_failures": 7 / 16, "order_consistency": 3 / 4, "longer_wins": 1 / 2}


def test_the_longer_answer_is_found_on_either_side(rubric: Rubric) -> None:
    figures = Figures()
    pair = PAIR.swapped()

    figures.count_outcome(compared(rubric, "[RESULT] B", "[RESULT] A", pair=pair), pair)

    assert figures.shares()["longer_wins"] == 1
