"""From what a judge said, or why it said nothing, to the messages that tell of it. No I/O."""

from __future__ import annotations

import uuid
from typing import Any

from local.errors import ModelError
from local.protocol.judgement_messages import ComparisonResult, CritiqueResult, PairwiseResult
from local.protocol.message import Message
from local.protocol.messages import ErrorInfo, ResponseGeneration
from local.services.judging.judgement import ComparisonOutcome, JudgingStatus, Verdict

_NAMESPACE = uuid.UUID("b7c0a5de-1c8b-4b3f-9a4e-52f8c7d1e6a3")


def judgement_id(kind: type[Message], query_id: str, respondent_id: str) -> str:
    """The id of the envelope with a judgement: always the same, so that publishing it twice is one judgement."""
    return uuid.uuid5(_NAMESPACE, f"{query_id}\n{respondent_id}\n{kind.subject}").hex


def critique(answer: ResponseGeneration, rubric: str, judge: str, end: Verdict | ModelError) -> CritiqueResult:
    """The grade of an answer, by the model `judge`."""
    common = {"respondent_id": answer.respondent_id, **_common([answer], rubric, judge)}
    if isinstance(end, ModelError):
        return CritiqueResult(score=None, status="failed", feedback=str(end), **common)
    return CritiqueResult(
        score=end.score, expected=end.expected, status=end.status.value, feedback=end.feedback, **common
    )


def preference(
    answer_a: ResponseGeneration,
    answer_b: ResponseGeneration,
    rubric: str,
    judge: str,
    end: ComparisonOutcome | ModelError,
) -> PairwiseResult:
    """Which of two respondents' answers is better, by the model `judge`."""
    common = _common([answer_a, answer_b], rubric, judge)
    if isinstance(end, ModelError):
        return PairwiseResult(winner=None, status="failed", feedback=str(end), **common)
    return PairwiseResult(
        winner=None if end.winner is None else end.winner.value,
        order_consistent=end.order_consistent,
        status=end.status.value,
        feedback=end.feedback,
        **common,
    )


def comparison(judge: str, outcome: ComparisonOutcome) -> ComparisonResult:
    """What a model is told that wanted two texts compared."""
    if outcome.winner is None:
        text = "the critic could not say in a form that can be read which answer is better"
        return ComparisonResult(judge=judge, error=ErrorInfo(kind=JudgingStatus.UNPARSED.value, message=text))
    return ComparisonResult(
        winner=outcome.winner.value, order_consistent=outcome.order_consistent, feedback=outcome.feedback, judge=judge
    )


def no_comparison(kind: str, message: str) -> ComparisonResult:
    """What it is told when nobody compared them."""
    return ComparisonResult(error=ErrorInfo(kind=kind, message=message))


def is_same_model(one: str, other: str) -> bool:
    """Whether two names mean one model; `:latest` is what Ollama takes a name without a tag for."""
    return bool(one) and one.removesuffix(":latest") == other.removesuffix(":latest")


def _common(answers: list[ResponseGeneration], rubric: str, judge: str) -> dict[str, Any]:
    self_judged = any(is_same_model(judge, answer.model) for answer in answers)
    return {"query_id": answers[0].query_id, "rubric": rubric, "judge": judge, "self_judged": self_judged}
