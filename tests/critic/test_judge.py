"""How one answer is judged and two are compared, what a judge is shown, and when a judge that fails is left alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from local.bus.message import ErrorInfo
from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.core.errors import ModelBusy, ModelError
from local.critic.judge import (
    PAUSE_SECONDS,
    PROFILES,
    SHORT_PAUSE_SECONDS,
    WAITS,
    CircuitBreaker,
    Comparison,
    ComparisonOutcome,
    Grading,
    JudgeAway,
    JudgeRequest,
    JudgingStatus,
    Token,
    Verdict,
    Winner,
    case_of,
    critique,
    pair_of,
    shortened,
)
from local.critic.judging import Case, Evidence, Pair, Rubric, Rubrics, UsedTool, choose


@pytest.fixture
def grading(rubric: Rubric) -> Grading:
    return Grading(PROFILES["prometheus2"], Case("Capital of France?", "Paris."), rubric)


def asked(grading: Grading) -> JudgeRequest:
    assert grading.ask is not None
    return grading.ask


def test_after_two_retries_there_is_no_score_and_what_was_said_is_kept(grading: Grading) -> None:
    for reply in ("", "[RESULT] 6", "It is good."):
        grading.receive(reply)

    assert grading.ask is None
    assert grading.verdict == Verdict(JudgingStatus.UNPARSED, None, None, "It is good.", replies=3, unread=3)


def expected(grading: Grading, *tokens: Token, said: str | None = None) -> float | None:
    grading.receive("".join(token.text for token in tokens) if said is None else said, tokens)
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


PAIR = Pair("Capital of France?", "It is Paris, of course.", "Rome.")


def compared(rubric: Rubric, *replies: str, pair: Pair = PAIR) -> ComparisonOutcome:
    comparison = Comparison(PROFILES["prometheus2"], pair, rubric)
    for reply in replies:
        assert comparison.outcome is None
        comparison.receive(reply)
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


def test_an_order_without_a_verdict_ends_it_without_a_winner(rubric: Rubric) -> None:
    assert compared(rubric, "?", "?", "both") == ComparisonOutcome(
        JudgingStatus.UNPARSED, None, None, "both", replies=3, unread=3
    )
    assert compared(rubric, "[RESULT] A", "?", "?", "no").order_consistent is None


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
        comparison.receive(*told("A" if probability > 0.5 else "B", probability))
    assert comparison.outcome is not None
    assert comparison.outcome.winner is winner
    assert comparison.outcome.preferred == pytest.approx(preferred)
    assert comparison.outcome.order_consistent is ((forward > 0.5) != (backward > 0.5))


def answer(text: str = "Deep.", *calls: ToolCallRecord, **fields: Any) -> ResponseGeneration:
    told = {"query_id": "q", "query": "How deep?", "answer": text, "status": "answered", "tool_calls": calls}
    return ResponseGeneration(**{**told, **fields})


def call(tool: str, result: str | None, error: ErrorInfo | None = None) -> ToolCallRecord:
    return ToolCallRecord(call_id="c", tool=tool, args={}, result=result, error=error)


FETCHED = call("web_fetch", "1308 m")
FAILED = call("web_search", None, ErrorInfo(kind="timeout", message="too late"))


def test_the_evidence_is_what_the_tools_returned_failures_included() -> None:
    assert case_of(answer("1308 m", FETCHED, FAILED)) == Case(
        "How deep?",
        "1308 m",
        (Evidence("web_fetch", "1308 m"), Evidence("web_search", "nothing; it failed: too late")),
    )


def test_two_answers_share_their_evidence_and_each_result_stands_once() -> None:
    pair = pair_of(answer("a", FETCHED), answer("b", FETCHED, FAILED, respondent_id="B"))
    assert (pair.answer_a, pair.answer_b) == ("a", "b")
    assert [one.source for one in pair.evidence] == ["web_fetch", "web_search"]


LONG = "\n\n".join(f"Paragraph {number} speaks of something else entirely." for number in range(200))
CASES = [
    Case(LONG, LONG, tuple(Evidence(f"t{n}", LONG) for n in range(12))),
    Pair(LONG, LONG, LONG, (Evidence("t", LONG),)),
    Case("How deep?", "1308 m", (Evidence("short", "1308 m"), Evidence("long", LONG))),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("room", [4000, 16_000])
def test_whatever_was_said_there_is_room_for_it(case: Case | Pair, room: int) -> None:
    short = shortened(case, room)
    texts = [getattr(short, name) for name in ("query", "answer", "answer_a", "answer_b") if hasattr(short, name)]
    assert sum(map(len, [*texts, *(one.text for one in short.evidence)])) <= room * 1.05
    assert all(texts) and short.evidence


def test_a_short_result_is_kept_whole_beside_a_long_one() -> None:
    first, second = shortened(CASES[2], 4000).evidence
    assert first.text == "1308 m"
    assert 2500 < len(second.text) < 4000


def test_a_judge_of_its_own_words_is_marked() -> None:
    verdict = Verdict(JudgingStatus.GRADED, 5, None, "Right.", replies=1, unread=0)
    for author, self_judged in (("judge", True), ("judge:latest", True), ("gemma", False), ("", False)):
        assert critique(answer(model=author), "knowledge", "judge", verdict).self_judged is self_judged


def scale(criteria: str) -> dict[str, Any]:
    return {"criteria": criteria, "scores": ["bad", "poor", "fair", "good", "best"]}


RUBRICS = Rubrics.model_validate(
    {name: scale(name) for name in ("knowledge", "tools", "memory")}
    | {"of_tools": {"translation": scale("translation")}}
)
SEARCH, RECALL = UsedTool("web_search"), UsedTool("search_memory")


@pytest.mark.parametrize(
    ("used", "name"),
    [
        ([], "knowledge"),
        ([SEARCH], "tools"),
        ([RECALL], "memory"),
        ([RECALL, RECALL], "memory"),
        ([RECALL, SEARCH], "tools"),
        ([SEARCH, UsedTool("translate", "translation")], "translation"),
        ([UsedTool("translate", "one that is not configured")], "tools"),
    ],
)
def test_the_rubric_follows_from_what_the_turn_did(used: list[UsedTool], name: str) -> None:
    chosen, rubric = choose(RUBRICS, used)

    assert (chosen, rubric.criteria) == (name, name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"criteria": "", "scores": ["1", "2", "3", "4", "5"]},
        {"criteria": "Good?", "scores": ["1", "2", "3", "4"]},
        {"criteria": "Good?", "scores": ["1", "2", "3", "4", "5", "6"]},
        {"criteria": "Good?\n###Feedback:", "scores": ["1", "2", "3", "4", "5"]},
        {"criteria": "Good?", "scores": ["1", "2", "3", "4", "5"], "weight": 2},
    ],
)
def test_a_rubric_is_one_question_and_five_sentences_of_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rubric.model_validate(wrong)


DOWN = ModelError("it is down", kind="unreachable")
MISSING = ModelError("model m is not pulled: ollama pull m", kind="model_missing", status=404)


def test_a_failure_that_passes_is_waited_for_longer_each_time_and_then_left_alone() -> None:
    breaker = CircuitBreaker()
    assert [breaker.after(DOWN, failures, 0.0) for failures in (1, 2, 3)] == [*WAITS, None]
    with pytest.raises(JudgeAway, match="it is down") as caught:
        breaker.check(SHORT_PAUSE_SECONDS - 1)
    assert caught.value.kind == "unreachable"
    breaker.check(SHORT_PAUSE_SECONDS)


def test_a_model_that_is_missing_is_not_asked_again_for_a_while_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaker = CircuitBreaker()
    assert [breaker.after(MISSING, 1, now) for now in (0.0, 1.0, PAUSE_SECONDS + 2)] == [None] * 3
    with pytest.raises(JudgeAway):
        breaker.check(2 * PAUSE_SECONDS)
    assert breaker.problem == "model m is not pulled: ollama pull m"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_an_answer_ends_the_pause_and_the_problem() -> None:
    breaker = CircuitBreaker()
    breaker.after(MISSING, 1, 0.0)
    breaker.answered()
    breaker.check(1.0)
    assert breaker.problem == ""


def test_a_server_that_wants_to_be_asked_later_gets_its_wish() -> None:
    busy = ModelBusy("slow down", kind="rate_limit", status=429, retry_after=60.0)
    assert CircuitBreaker().after(busy, 1, 0.0) == 60.0


@pytest.mark.parametrize("kind", ["context_overflow", "bad_request", "filtered"])
def test_what_lies_in_one_answer_keeps_no_other_from_being_judged(kind: str) -> None:
    breaker = CircuitBreaker()
    assert breaker.after(ModelError("no", kind=kind), 1, 0.0) is None
    breaker.check(0.0)
    assert breaker.problem == ""
