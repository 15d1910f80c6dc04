"""From answers on the bus to what a judge is shown of them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from local.agents.answering.context.excerpt import excerpt
from local.protocol.messages import ResponseGeneration, ToolCallRecord
from local.services.judging.prompt import Case, Evidence, Pair
from local.services.judging.rubric import UsedTool

C = TypeVar("C", Case, Pair)

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
    """The same in about `room` characters: half of them for the answers, a quarter for the query, the rest for the
    evidence. Long results keep the parts that have most to do with query and answers."""
    query = excerpt(case.query, "", room // 4)
    whole = (
        {"answer": case.answer} if isinstance(case, Case) else {"answer_a": case.answer_a, "answer_b": case.answer_b}
    )
    answers: dict[str, Any] = {name: excerpt(text, query, room // 2 // len(whole)) for name, text in whole.items()}
    left = room - len(query) - sum(map(len, answers.values()))
    evidence = _fitting(case.evidence, " ".join([query, *answers.values()]), left)
    return replace(case, query=query, evidence=evidence, **answers)


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
