"""From answers to what a judge is shown of them, and from what a judge said, or why it said nothing, to the messages
that tell of it. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from local.agents.answering.context.excerpt import excerpt
from local.errors import ModelError
from local.protocol.judgement_messages import ComparisonResult, CritiqueResult, PairwiseResult
from local.protocol.message import Message
from local.protocol.messages import ErrorInfo, ResponseGeneration, ToolCallRecord
from local.services.judging.judgement import ComparisonOutcome, JudgingStatus, Verdict
from local.services.judging.prompt import Case, Evidence, Pair
from local.services.judging.rubric import UsedTool

C = TypeVar("C", Case, Pair)

_NAMESPACE = uuid.UUID("b7c0a5de-1c8b-4b3f-9a4e-52f8c7d1e6a3")
LEAST_CHARACTERS = 400  # of a tool's result; less of it proves nothing


def used_tools(answers: Iterable[ResponseGeneration], rubrics: Mapping[str, str]) -> list[UsedTool]:
    """The tools that these answers were written with; `rubrics` are those that tools ask for, by the tools' names."""
    return [UsedTool(call.tool, rubrics.get(call.tool, "")) for answer in answers for call in answer.tool_calls]


def case_of(answer: ResponseGeneration) -> Case:
    """One answer with what its tools returned."""
    return Case(answer.query, answer.answer, _evidence([answer]))


def pair_of(answer_a: ResponseGeneration, answer_b: ResponseGeneration) -> Pair:
    """Two answers to one query with what the tools of either returned, each result once."""
    return Pair(answer_a.query, answer_a.answer, answer_b.answer, _evidence([answer_a, answer_b]))


def shortened(case: C, room: int) -> C:
    """The case in about `room` characters: half of them for the answers, a quarter for the query, the rest for the
    evidence. Long results keep the parts that have most to do with query and answers."""
    query = excerpt(case.query, "", room // 4)
    whole = (
        {"answer": case.answer} if isinstance(case, Case) else {"answer_a": case.answer_a, "answer_b": case.answer_b}
    )
    answers: dict[str, Any] = {name: excerpt(text, query, room // 2 // len(whole)) for name, text in whole.items()}
    left = room - len(query) - sum(map(len, answers.values()))
    evidence = _fitting(case.evidence, " ".join([query, *answers.values()]), left)
    return replace(case, query=query, evidence=evidence, **answers)


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


def unfit_critique(answer: ResponseGeneration, rubric: str, judge: str, why: str) -> CritiqueResult:
    """That the judge of an answer has failed its self-test."""
    common = {"respondent_id": answer.respondent_id, **_common([answer], rubric, judge)}
    return CritiqueResult(score=None, status="judge_unfit", feedback=why, **common)


def unfit_comparison(
    answer_a: ResponseGeneration, answer_b: ResponseGeneration, rubric: str, judge: str, why: str
) -> PairwiseResult:
    """That the judge of two answers has failed its self-test."""
    common = _common([answer_a, answer_b], rubric, judge)
    return PairwiseResult(winner=None, status="judge_unfit", feedback=why, **common)


def left_out(answer: ResponseGeneration, reason: str) -> CritiqueResult:
    """That an answer is not graded, and why."""
    of = {"query_id": answer.query_id, "respondent_id": answer.respondent_id, "session_id": answer.session_id}
    return CritiqueResult(score=None, status="skipped", feedback=reason, **of)


def not_compared(answer: ResponseGeneration, reason: str) -> PairwiseResult:
    """That an answer is not compared with its rival, and why."""
    of = {"query_id": answer.query_id, "session_id": answer.session_id}
    return PairwiseResult(winner=None, status="skipped", feedback=reason, **of)


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
        preferred=end.preferred,
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
    """The answer to a request that nobody could compare for."""
    return ComparisonResult(error=ErrorInfo(kind=kind, message=message))


def is_same_model(one: str, other: str) -> bool:
    """Whether two names mean one model; `:latest` is what Ollama takes a name without a tag for."""
    return bool(one) and one.removesuffix(":latest") == other.removesuffix(":latest")


def _fitting(evidence: Sequence[Evidence], topic: str, room: int) -> tuple[Evidence, ...]:
    """As many as can be shown in part, the short ones whole."""
    kept = list(evidence[: max(1, room // LEAST_CHARACTERS)])
    limits: dict[int, int] = {}
    for place, index in enumerate(sorted(range(len(kept)), key=lambda index: len(kept[index].text))):
        limits[index] = max(LEAST_CHARACTERS, room // (len(kept) - place))
        room -= min(limits[index], len(kept[index].text))
    return tuple(replace(one, text=excerpt(one.text, topic, limits[index])) for index, one in enumerate(kept))


def _evidence(answers: Iterable[ResponseGeneration]) -> tuple[Evidence, ...]:
    found = (Evidence(call.tool, _returned(call)) for answer in answers for call in answer.tool_calls)
    return tuple(dict.fromkeys(found))


def _returned(call: ToolCallRecord) -> str:
    if call.error is not None:
        return f"nothing; it failed: {call.error.message}"
    return call.result or ""


def _common(answers: list[ResponseGeneration], rubric: str, judge: str) -> dict[str, Any]:
    self_judged = any(is_same_model(judge, answer.model) for answer in answers)
    of_query = {"query_id": answers[0].query_id, "session_id": answers[0].session_id}
    return {**of_query, "rubric": rubric, "judge": judge, "self_judged": self_judged}
