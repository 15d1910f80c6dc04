"""Two answers compared in both orders, and the figures that are kept of it."""

from __future__ import annotations

import math
import random

import pytest

from local.critic.judge import PROFILES, Comparison, ComparisonOutcome, Figures, JudgingStatus, Token, Verdict, Winner
from local.critic.judging import Pair, Rubric

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
    assert set(figures.shares().values()) == {None}

    same_length = Pair("?", "one", "two")
    figures.count_verdict(Verdict(JudgingStatus.GRADED, 4, None, "", replies=2, unread=1))
    figures.count_verdict(Verdict(JudgingStatus.UNPARSED, None, None, "", replies=3, unread=3))
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] B"), PAIR)
    figures.count_outcome(compared(rubric, "[RESULT] B", "[RESULT] A"), PAIR)
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] A"), PAIR)
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] B", pair=same_length), same_length)
    figures.count_outcome(compared(rubric, "?", "?", "?"), PAIR)

    assert (figures.graded, figures.unparsed, figures.comparisons) == (1, 2, 4)
    assert figures.shares() == {
        "parse_failures": 7 / 16,
        "order_consistency": 3 / 4,
        "longer_wins": 1 / 2,
        "longer_wins_expected": 1 / 2,
    }


def test_a_respondent_that_is_longer_and_better_is_no_liking_for_length(rubric: Rubric) -> None:
    figures = Figures()
    for _ in range(9):
        figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] B"), PAIR)
    swapped = PAIR.swapped()
    figures.count_outcome(compared(rubric, "[RESULT] A", "[RESULT] B", pair=swapped), swapped)

    shares = figures.shares()
    assert (shares["longer_wins"], shares["longer_wins_expected"]) == (0.9, 0.9)


def told(letter: str, probability_of_a: float) -> tuple[str, tuple[Token, ...]]:
    """A reply and its tokens."""
    alternatives = {" A": math.log(probability_of_a), " B": math.log(1 - probability_of_a)}
    return f"[RESULT] {letter}", (Token("[RESULT]", {}), Token(f" {letter}", alternatives))


@pytest.mark.parametrize(
    ("forward", "backward", "winner", "preferred"),
    [
        (0.95, 0.05, Winner.A, 0.95),  # the same answer in both orders
        (0.05, 0.95, Winner.B, 0.05),
        (0.99, 0.55, Winner.A, 0.72),  # "A" twice, but only once by a hair
        (0.60, 0.97, Winner.B, 0.315),
        (0.90, 0.90, Winner.TIE, 0.5),  # the first place, whoever has it
        (0.55, 0.48, Winner.TIE, 0.535),  # the same answer twice, by a hair
    ],
)
def test_probabilities_in_both_orders_decide_where_there_are_any(
    forward: float, backward: float, winner: Winner, preferred: float, rubric: Rubric
) -> None:
    comparison = Comparison(PROFILES["prometheus2"], PAIR, rubric)
    for probability in (forward, backward):
        comparison.hear(*told("A" if probability > 0.5 else "B", probability))
    assert comparison.outcome is not None
    assert comparison.outcome.winner is winner
    assert comparison.outcome.preferred == pytest.approx(preferred)
    assert comparison.outcome.order_consistent is ((forward > 0.5) != (backward > 0.5))


def test_probabilities_of_one_order_alone_decide_nothing(rubric: Rubric) -> None:
    comparison = Comparison(PROFILES["prometheus2"], PAIR, rubric)
    comparison.hear(*told("A", 0.99))
    comparison.hear("[RESULT] A")
    assert comparison.outcome is not None
    assert (comparison.outcome.winner, comparison.outcome.preferred) == (Winner.TIE, None)


def test_probabilities_find_more_of_what_is_better_than_letters_do(rubric: Rubric) -> None:
    """A judge with a liking for the first place, of which every pair has some truth in it."""
    dice, right, by_letter, wrong = random.Random(1), 0, 0, 0
    for _ in range(400):
        truth = dice.gauss(0, 1.5)
        logits = [truth + 1 + dice.gauss(0, 0.7), -truth + 1 + dice.gauss(0, 0.7)]
        forward, backward = (1 / (1 + math.exp(-logit)) for logit in logits)
        comparison = Comparison(PROFILES["prometheus2"], PAIR, rubric)
        for probability in (forward, backward):
            comparison.hear(*told("A" if probability > 0.5 else "B", probability))
        assert comparison.outcome is not None
        better = Winner.A if truth > 0 else Winner.B
        right += comparison.outcome.winner is better
        wrong += comparison.outcome.winner is not better and comparison.outcome.winner is not Winner.TIE
        by_letter += (forward > 0.5) != (backward > 0.5) and (forward > 0.5) == (truth > 0)
    assert right > 1.25 * by_letter
    assert wrong < 0.1 * right


def test_the_longer_answer_is_found_on_either_side(rubric: Rubric) -> None:
    figures = Figures()
    pair = PAIR.swapped()

    figures.count_outcome(compared(rubric, "[RESULT] B", "[RESULT] A", pair=pair), pair)

    assert figures.shares()["longer_wins"] == 1
