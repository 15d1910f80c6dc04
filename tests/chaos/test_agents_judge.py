"""The judge of agents' work finds every kind of broken promise, and none in a run without fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from chaos_harness.agents_judge import Evidence, Fault, Journalled, judge
from chaos_harness.history import Asked, Form, Outcome, Read
from chaos_harness.history import Question as UsersQuestion
from chaos_harness.orders import Order

from local.bus.messages import QueryReceived, ResponseGeneration, ToolCallRecord
from local.swarm.messages import AgentTask

ORDER = Order("s-0", "s")
FIRST, SECOND, THIRD, FOURTH = ORDER.cards
PART = "part"


def asked(name: str, task: str, parent: str = "s-0") -> QueryReceived:
    given = AgentTask(
        agent_id=name, name=name, depth=1, parent_query_id=parent, root_query_id="s-0", root_session_id="s",
        asked=ORDER.text, max_tokens=1, max_calls=1,
    )  # fmt: skip
    return QueryReceived(query_id=name, query=f"You are {name}.\n\n{task}", task=given)


def answered(query_id: str, answer: str, told: Sequence[tuple[str, str]] = ()) -> ResponseGeneration:
    """With what was told of the agents that it has asked, and what they said."""
    result = json.dumps({"results": [{"agent": name, "answer": said} for name, said in told]})
    call = ToolCallRecord(call_id="c", tool="delegate_task", args={}, result=result)
    calls = (call,) if told else ()
    return ResponseGeneration(query_id=query_id, status="answered", query="", answer=answer, tool_calls=calls)


TASKS = ORDER.tasks
ASKED = [
    asked(PART, TASKS[0]), asked("a", TASKS[1]), asked("b", TASKS[2]), asked("c", TASKS[3], PART),
    asked("d", TASKS[4], PART),
]  # fmt: skip
ANSWERS = [
    answered("s-0", "done", [("a", "stamped"), ("b", "stamped"), (PART, "both")]),
    answered(PART, "both", [("c", "stamped"), ("d", "stamped")]),
    *(answered(name, "stamped") for name in "abcd"),
]
USER = Asked(UsersQuestion("s-0", "s", ORDER.text, ""), Form.WHOLE, 0.0, 0.0)
USER.reads.append(Read(Form.WHOLE, Outcome("answered", "done"), 1.0))
GOOD = Evidence([(ORDER, USER)], Journalled(ASKED, ANSWERS), {"s-0": ["ENDED"] * 5}, ORDER.cards)


def with_journal(asked: Sequence[QueryReceived] = ASKED, answers: Sequence[ResponseGeneration] = ANSWERS) -> Evidence:
    return replace(GOOD, journal=Journalled(asked, answers))


def test_a_run_without_fault_is_found_to_be_one() -> None:
    assert judge(GOOD) == []
    honest = [each if each.query_id != "d" else answered("d", "It may or may not be stamped.") for each in ANSWERS]
    honest[1] = answered(PART, "both", [("c", "stamped"), ("d", "It may or may not be stamped.")])
    assert judge(replace(with_journal(answers=honest), stamped=[FIRST, SECOND, THIRD])) == []


@pytest.mark.parametrize(
    ("evidence", "fault"),
    [
        (with_journal(ASKED[:-1]), Fault.NOT_ASKED),
        (with_journal([*ASKED, asked("e", TASKS[1])], [*ANSWERS, answered("e", "stamped")]), Fault.ASKED_TWICE),
        (with_journal([*ASKED, asked("e", "Sing.")], [*ANSWERS, answered("e", "La.")]), Fault.STRANGE),
        (with_journal(answers=ANSWERS[:-1]), Fault.UNANSWERED),
        (with_journal(answers=[*ANSWERS, answered("d", "stamped again")]), Fault.ANSWERED_TWICE),
        (with_journal(answers=[answered("s-0", "done"), *ANSWERS[1:]]), Fault.LEFT_OUT),
        (
            with_journal(answers=[*ANSWERS[:-1], ANSWERS[-1].model_copy(update={"status": "failed"})]),
            Fault.TASK_FAILED,
        ),
        (replace(GOOD, agents={"s-0": ["ENDED"] * 4 + ["WORKING"]}), Fault.NOT_ENDED),
        (replace(GOOD, stamped=[*ORDER.cards, FOURTH]), Fault.STAMPED_TWICE),
        (replace(GOOD, stamped=ORDER.cards[:-1]), Fault.NOT_STAMPED),
    ],
)
def test_each_broken_promise_is_found(evidence: Evidence, fault: Fault) -> None:
    assert fault in {violation.fault for violation in judge(evidence)}
