"""One answer on its way to a verdict."""

from __future__ import annotations

import math

import pytest

from local.core.errors import IllegalTransition
from local.critic.judge import PROFILES, Grading, JudgeRequest, JudgingStatus, Token, Verdict
from local.critic.judging import Case, Rubric


@pytest.fixture
def grading(rubric: Rubric) -> Grading:
    return Grading(PROFILES["prometheus2"], Case("Capital of France?", "Paris."), rubric)


def asked(grading: Grading) -> JudgeRequest:
    assert grading.ask is not None
    return grading.ask


def scores(**logarithms: float) -> dict[str, float]:
    return {name.removeprefix("s"): value for name, value in logarithms.items()}


def test_a_reply_that_can_be_read_ends_it(grading: Grading) -> None:
    assert asked(grading).attempt == 1
    assert grading.verdict is None

    grading.hear("Feedback: Right. [RESULT] 4")

    assert grading.ask is None
    assert grading.verdict == Verdict(JudgingStatus.GRADED, 4, None, "Right.", replies=1, unread=0)


def test_the_same_question_is_asked_again_at_another_temperature(grading: Grading) -> None:
    first = asked(grading)
    grading.hear("I like it.")
    second = asked(grading)
    grading.hear("Right. [RESULT] 5")

    assert second.prompt == first.prompt
    assert (first.temperature, second.attempt) == (0.0, 2)
    assert second.temperature > 0
    assert grading.verdict == Verdict(JudgingStatus.GRADED, 5, None, "Right.", replies=2, unread=1)


def test_after_two_retries_there_is_no_score_and_what_was_said_is_kept(grading: Grading) -> None:
    for reply in ("", "[RESULT] 6", "It is good."):
        grading.hear(reply)

    assert grading.ask is None
    assert grading.verdict == Verdict(JudgingStatus.UNPARSED, None, None, "It is good.", replies=3, unread=3)


def test_a_reply_to_no_question_is_refused_and_changes_nothing(grading: Grading) -> None:
    grading.hear("[RESULT] 4")

    with pytest.raises(IllegalTransition):
        grading.hear("[RESULT] 1")

    assert grading.verdict is not None
    assert grading.verdict.score == 4


def expected(grading: Grading, *tokens: Token, said: str | None = None) -> float | None:
    grading.hear("".join(token.text for token in tokens) if said is None else said, tokens)
    assert grading.verdict is not None
    assert grading.verdict.score == 4
    return grading.verdict.expected


MARK = Token("Good: 5. [RESULT]", {"Good": 0.0})


def test_the_expectation_is_the_mean_over_the_probabilities_of_the_scores(grading: Grading) -> None:
    alternatives = {" 4": math.log(0.5), "4": math.log(0.1), " 5": math.log(0.2), " the": math.log(0.2)}

    assert expected(grading, MARK, Token(" 4", alternatives), Token("\n", {})) == pytest.approx(
        (4 * 0.6 + 5 * 0.2) / 0.8
    )


@pytest.mark.parametrize(
    "tokens",
    [
        (),
        (MARK, Token(" 4", {})),
        (MARK, Token(" 4", {" 4": math.log(0.2), " the": math.log(0.8)})),
        (MARK, Token(" 4", {" 4": math.nan})),
        (MARK, Token(" 4.", {" 4": 0.0})),
        (Token("Good: 5. [RESULT] 4", {"4": 0.0}),),
        (Token("other text", {}), Token(" 4", {"4": 0.0})),
    ],
    ids=["no tokens", "no alternatives", "little mass", "no number", "more in the token", "one token", "other text"],
)
def test_without_trustworthy_probabilities_the_integer_stands_alone(
    tokens: tuple[Token, ...], grading: Grading
) -> None:
    assert expected(grading, *tokens, said="Good: 5. [RESULT] 4") is None


def test_the_place_of_the_score_is_found_in_an_object_too(rubric: Rubric) -> None:
    grading = Grading(PROFILES["generic-json"], Case("Capital of France?", "Paris."), rubric)
    place = Token("4", {"4": math.log(0.5), "3": math.log(0.5)})

    assert expected(grading, Token('{"feedback": "4", "score": ', {}), place, Token("}", {})) == pytest.approx(3.5)
