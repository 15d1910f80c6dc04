"""What a judge is shown of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.critic.judge import case_of, pair_of, shortened, used_tools
from local.critic.judging import Case, Evidence, Pair, UsedTool


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


def test_a_tool_may_name_the_rubric() -> None:
    assert used_tools([answer("a", FETCHED, FAILED)], {"web_fetch": "pages"}) == [
        UsedTool("web_fetch", "pages"),
        UsedTool("web_search"),
    ]


LONG = "\n\n".join(f"Paragraph {number} speaks of something else entirely." for number in range(600))
CASES = [
    Case(LONG, LONG, tuple(Evidence(f"t{n}", LONG) for n in range(30))),
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


def test_what_fits_is_left_as_it_is_and_a_short_result_is_kept_whole_beside_a_long_one() -> None:
    case = case_of(answer("1308 m", FETCHED))
    assert shortened(case, 4000) == case
    first, second = shortened(CASES[2], 4000).evidence
    assert first.text == "1308 m"
    assert 2500 < len(second.text) < 4000
