"""The memory is killed again and again while it stores answers and is searched; `scripts/bench.py memory-kills` is the
long run. And the judge of such a run finds every kind of violation, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from chaos_harness.memory_judge import Evidence, Fault, Kept, Search, judge
from chaos_harness.memory_kills import MOMENTS, memory_kills
from chaos_harness.remembered import remembered

from local.bus.message import ErrorInfo
from local.memory.messages import MemoryResult, RecalledEngram
from local.runtime.supervisor import MOST_EARLY_DEATHS

KILLS, ANSWERS = 6, 200


@pytest.mark.thorough
@pytest.mark.system
@pytest.mark.timeout(120)
async def test_a_memory_killed_while_it_stores_keeps_each_answer_once_and_never_finds_anything_wrong(
    tmp_path, chaos_seed
) -> None:
    result = await memory_kills(tmp_path, kills=KILLS, answers=ANSWERS, seed=chaos_seed)
    assert result.violations == [], "\n".join(result.log)
    assert result.restarts == KILLS
    assert len([search for search in result.searches if search.was_told]) > ANSWERS / 2
    assert not [line for line in result.log if "Traceback" in line]


def test_no_row_of_kills_makes_the_supervisor_give_the_memory_up() -> None:
    assert len(MOMENTS) < MOST_EARLY_DEATHS


PUBLISHED = [remembered(number) for number in range(3)]
OURS, OTHER = PUBLISHED[1], PUBLISHED[2]


@pytest.fixture
def evidence() -> Evidence:
    """Three answers, kept, told and indexed; one search that found them."""
    return Evidence(
        published=PUBLISHED,
        kept=[Kept(each.query_id, each.session_id, each.user_id, each.query, each.answer) for each in PUBLISHED],
        told=[each.query_id for each in PUBLISHED],
        facts=[(each.query_id, each.slot) for each in PUBLISHED if each.slot],
        vectors={each.query_id: f"key of {each.query_id}" for each in PUBLISHED},
        index=frozenset(f"key of {each.query_id}" for each in PUBLISHED),
        searches=[searched(hits=(hit(OURS), hit(OTHER)))],
    )


def searched(user_id: str = OURS.user_id, was_told: bool = True, **result: Any) -> Search:
    return Search(OURS, user_id, was_told, MemoryResult(verb="search", **result))


def hit(each: Any, **fields: Any) -> RecalledEngram:
    shown = {"query": each.query, "answer": each.answer, "session_id": each.session_id, "query_id": each.query_id}
    rest = {"engram_id": each.query_id, "respondent_id": "A", "origin": "assistant", "asked_at": 1.0, "relevance": 1.0}
    return RecalledEngram(**{**shown, **rest, **fields})


def failed(kind: str, message: str = "it is down") -> Search:
    return searched(error=ErrorInfo(kind=kind, message=message))


def test_a_run_without_fault_has_none(evidence) -> None:
    assert judge(evidence) == []


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        (Fault.LOST, lambda run: {"kept": run.kept[1:]}),
        (Fault.TWICE, lambda run: {"kept": [*run.kept, run.kept[0]]}),
        (Fault.CHANGED, lambda run: {"kept": [run.kept[0]._replace(user_id="ben"), *run.kept[1:]]}),
        (Fault.UNTOLD, lambda run: {"told": run.told[1:]}),
        (Fault.TOLD_TWICE, lambda run: {"told": [*run.told, run.told[0]]}),
        (Fault.FACT_LOST, lambda run: {"facts": []}),
        (Fault.FACT_TWICE, lambda run: {"facts": [*run.facts, *run.facts]}),
        (Fault.INVENTED, lambda run: {"facts": [*run.facts, (OURS.query_id, "my password")]}),
        (Fault.NOT_INDEXED, lambda run: {"index": frozenset(sorted(run.index)[1:])}),
        (Fault.NOT_INDEXED, lambda run: {"vectors": {}, "index": frozenset()}),
        (Fault.INDEXED_UNKNOWN, lambda run: {"index": run.index | {"key of nobody"}}),
        (Fault.NOT_FOUND, lambda run: {"searches": [searched(hits=(hit(OTHER),))]}),
        (Fault.INVENTED, lambda run: {"searches": [searched(hits=(hit(OURS), hit(OTHER, answer="Noted.")))]}),
        (Fault.INVENTED, lambda run: {"searches": [searched(hits=(hit(OURS), hit(OTHER, query_id="q9")))]}),
        (Fault.STRANGERS, lambda run: {"searches": [searched("ben", hits=(hit(OURS),))]}),
        (Fault.BAD_ERROR, lambda run: {"searches": [failed("internal")]}),
        (Fault.BAD_ERROR, lambda run: {"searches": [failed("unavailable", "OperationalError: locked")]}),
        (Fault.BAD_ERROR, lambda run: {"searches": [searched(hits=(hit(OURS),), degraded=("<class 'int'>",))]}),
    ],
)  # fmt: skip
def test_each_broken_promise_is_found(evidence, fault: Fault, changed: Callable[[Evidence], dict[str, Any]]) -> None:
    assert {violation.fault for violation in judge(replace(evidence, **changed(evidence)))} == {fault}


def test_a_memory_that_is_down_may_say_so_or_say_nothing_and_a_stranger_need_not_find_anything(evidence) -> None:
    silent = searched()._replace(result=None)
    harmless = [silent, failed("timeout"), failed("unavailable"), searched("ben"), searched(was_told=False)]
    assert judge(replace(evidence, searches=harmless)) == []
