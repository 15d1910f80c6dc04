"""The observers are killed and frozen, with everybody else, while users ask and rate; `scripts/bench.py chaos
--observers` is the long run. And the judge of it finds every kind of violation, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from chaos_harness.cells import Cell, Treatment, run_cell
from chaos_harness.load import Users
from chaos_harness.observers_judge import Evidence, Fault, Kept, Learned, Said, judge
from chaos_harness.observers_run import observed_chaos
from chaos_harness.ratings import changes
from chaos_harness.system import ChaosSystem

from local.bus.message import ErrorInfo
from local.bus.messages import QueryFailed, ResponseGeneration
from local.critic.messages import CritiqueResult, PairwiseResult, RewardEvent, UserFeedback
from local.memory.messages import MemoryIngested

SESSIONS, QUESTIONS, FAULTS = 3, 3, 6
THINK_SECONDS = 0.5
ZERO = Learned("q1", "A", 0.0)
UNACKNOWLEDGED = ("memory.told", "critic.told", "reward.told", "generator_b.answered")


@pytest.mark.thorough  # it is the longest of all: what each observer does once is in its own tests
@pytest.mark.system
@pytest.mark.timeout(150)
async def test_of_every_answer_each_thing_is_done_once_whoever_dies(tmp_path, chaos_seed) -> None:
    with ChaosSystem(tmp_path, observed=True) as system:
        users = Users([f"s{number}" for number in range(SESSIONS)], chaos_seed, THINK_SECONDS)
        result = await observed_chaos(system, users, every=1.0, faults=FAULTS, goes_on=lambda asked: asked < QUESTIONS)
    assert result.violations == [], "\n".join(system.log)
    assert len(result.asked) == SESSIONS * QUESTIONS
    assert result.ratings > len(result.asked)
    assert not [line for line in system.log if "Traceback" in line]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosSystem]:
    with ChaosSystem(tmp_path_factory.mktemp("observed"), observed=True) as system:
        yield system


@pytest.mark.system
@pytest.mark.thorough
@pytest.mark.timeout(120)
@pytest.mark.parametrize("failpoint", UNACKNOWLEDGED)
async def test_an_observer_killed_before_it_acknowledges_does_nothing_twice(observed, failpoint) -> None:
    before = len(observed.log)
    assert await run_cell(observed, Cell(failpoint, Treatment.KILL)) == [], "\n".join(observed.log[before:])


def test_of_an_answer_s_ratings_those_count_that_change_it() -> None:
    assert list(changes([None, 1, 1, -1, None, None, -1])) == [1, -1, None, -1]


def said_of(query_id: str) -> Iterator[Said]:
    for respondent in ("A", "B"):
        whose: dict[str, Any] = {"query_id": query_id, "respondent_id": respondent}
        yield ResponseGeneration(**whose, status="answered", query="?", answer="!")
        yield MemoryIngested(**whose, engram_id=f"{query_id}{respondent}")
        yield CritiqueResult(**whose, score=4, expected=3.8, status="graded")
    yield PairwiseResult(query_id=query_id, winner="B", order_consistent=True, status="graded")


@pytest.fixture
def evidence() -> Evidence:
    """Two answers of each respondent; a user has liked one, and then not any more."""
    rated, rewarded = [(1.0, 1), (2.0, -1)], [(1.0, 1.0), (2.0, -1.0)]
    return Evidence(
        answered=("q1", "q2"),
        ratings={"q1": [], "q2": [1, -1]},
        said=[
            *(said for query_id in ("q1", "q2") for said in said_of(query_id)),
            *(UserFeedback(query_id="q2", rating=rating, rated_at=at) for at, rating in rated),
            *(RewardEvent(query_id="q2", reward=reward, rated_at=at) for at, reward in rewarded),
        ],
        kept=[
            Kept("q1", "A", 3.8, None, "B"), Kept("q1", "B", 3.8, None, "B"),
            Kept("q2", "A", 3.8, -1, "B"), Kept("q2", "B", 3.8, None, "B"),
        ],
        learned=[Learned("q2", "A", -1.0)],
    )  # fmt: skip


def without(run: Evidence, kind: type[Said], number: int = 0) -> dict[str, Any]:
    """One thing less on record."""
    one = [said for said in run.said if isinstance(said, kind)][number]
    return {"said": [said for said in run.said if said is not one]}


def twice(run: Evidence, kind: type[Said]) -> dict[str, Any]:
    """One thing more on record."""
    return {"said": [*run.said, next(said for said in run.said if isinstance(said, kind))]}


def other(run: Evidence, **fields: Any) -> dict[str, Any]:
    """Another note at the last engram but one."""
    return {"kept": [*run.kept[:2], run.kept[2]._replace(**fields), run.kept[3]]}


NO_ANSWER = QueryFailed(query_id="q1", respondent_id="B", error=ErrorInfo(kind="gave_up", message="it died"))


def test_a_run_without_fault_has_none(evidence) -> None:
    assert judge(evidence) == []


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        (Fault.NOT_ANSWERED, lambda run: without(run, ResponseGeneration, 1)),
        (Fault.ANSWERED_TWICE, lambda run: twice(run, ResponseGeneration)),
        (Fault.FAILED, lambda run: {"said": [*run.said, NO_ANSWER]}),
        (Fault.NOT_KEPT, lambda run: {"kept": run.kept[1:]}),
        (Fault.KEPT_TWICE, lambda run: {"kept": [*run.kept, run.kept[0]]}),
        (Fault.NOT_TOLD, lambda run: without(run, MemoryIngested)),
        (Fault.TOLD_TWICE, lambda run: twice(run, MemoryIngested)),
        (Fault.GRADED_TWICE, lambda run: twice(run, CritiqueResult)),
        (Fault.COMPARED_TWICE, lambda run: twice(run, PairwiseResult)),
        (Fault.RATING_LOST, lambda run: {"refused": ["q1"]}),
        (Fault.RATING_LOST, lambda run: {"ratings": {**run.ratings, "q1": [1, None]}, "learned": [*run.learned, ZERO]}),
        (Fault.WRONG_REWARDS, lambda run: without(run, RewardEvent)),
        (Fault.WRONG_REWARDS, lambda run: twice(run, RewardEvent)),
        (Fault.WRONG_NOTES, lambda run: other(run, sentiment=1)),
        (Fault.WRONG_NOTES, lambda run: other(run, score=None)),
        (Fault.WRONG_NOTES, lambda run: other(run, winner="A")),
        (Fault.WRONG_RUNNING_REWARD, lambda run: {"learned": []}),
        (Fault.WRONG_RUNNING_REWARD, lambda run: {"learned": [*run.learned, ZERO]}),
    ],
)  # fmt: skip
def test_each_broken_promise_is_found(evidence, fault: Fault, changed: Callable[[Evidence], dict[str, Any]]) -> None:
    assert {violation.fault for violation in judge(replace(evidence, **changed(evidence)))} == {fault}


@pytest.mark.parametrize(("kind", "fault"), [(CritiqueResult, Fault.NOT_GRADED), (PairwiseResult, Fault.NOT_COMPARED)])
def test_a_judgement_that_is_missing_is_found_though_its_note_is_there(evidence, kind, fault) -> None:
    found = judge(replace(evidence, **without(evidence, kind)))
    assert {violation.fault for violation in found} == {fault, Fault.WRONG_NOTES}
