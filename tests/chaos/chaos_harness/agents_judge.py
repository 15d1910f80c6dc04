"""Judges the agents' work: by the journal, by their reports, and by effects."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from chaos_harness.history import Asked
from chaos_harness.judge import ANSWERED, Violation
from chaos_harness.orders import Order
from local.bus.messages import QueryReceived, ResponseGeneration

Json = dict[str, Any]
UNKNOWN = "may or may not"  # what an agent says whose call was interrupted


class Fault(StrEnum):
    """What a swarm that keeps its guarantees never does."""

    NOT_ASKED = "task not asked"
    ASKED_TWICE = "task asked twice"  # of two agents, or of one by two queries
    UNANSWERED = "task unanswered"
    ANSWERED_TWICE = "task answered twice"
    TASK_FAILED = "task failed"
    LEFT_OUT = "left out of the result"  # an agent's answer that its asker was not told
    STRANGE = "strange task"  # one that nobody has given
    NOT_ENDED = "agent not ended"
    STAMPED_TWICE = "stamped twice"
    NOT_STAMPED = "not stamped"  # and nobody says that it may not have been


class Journalled(NamedTuple):
    """What the journal has of tasks and answers, each envelope once."""

    asked: Sequence[QueryReceived]
    answers: Sequence[ResponseGeneration]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`agents` are the states of each order's agents as the system shows them; `stamped` the lines outside."""

    orders: Sequence[tuple[Order, Asked]]
    journal: Journalled
    agents: Mapping[str, Sequence[str]]
    stamped: Sequence[str]


def judge(evidence: Evidence) -> list[Violation]:
    """Every violation; none for a run without fault."""
    answers: defaultdict[str, list[ResponseGeneration]] = defaultdict(list)
    for answer in evidence.journal.answers:
        answers[answer.query_id].append(answer)
    asked: defaultdict[str, list[QueryReceived]] = defaultdict(list)
    for query in evidence.journal.asked:
        if query.task is not None:
            asked[query.task.root_query_id].append(query)
    times, found = Counter(evidence.stamped), list[Violation]()
    for order, each in evidence.orders:
        if each.outcome is not None and each.outcome.status == ANSWERED:
            found += _faults_of_tasks(order, asked[order.query_id], answers)
            found += _faults_of_cards(order, asked[order.query_id], answers, times)
            states = Counter(evidence.agents.get(order.query_id, ()))
            if states != {"ENDED": len(order.tasks)}:
                found.append(Violation(Fault.NOT_ENDED, order.query_id, str(dict(states))))
    return found


def _faults_of_tasks(
    order: Order, asked: Sequence[QueryReceived], answers: Mapping[str, Sequence[ResponseGeneration]]
) -> Iterator[Violation]:
    by_task: defaultdict[str, list[QueryReceived]] = defaultdict(list)
    for query in asked:
        by_task[next((task for task in order.tasks if task in query.query), query.query)].append(query)
    for task in order.tasks:
        if len(by_task[task]) != 1:
            yield Violation(Fault.ASKED_TWICE if by_task[task] else Fault.NOT_ASKED, order.query_id, task)
    for task in by_task.keys() - set(order.tasks):
        yield Violation(Fault.STRANGE, order.query_id, task)
    for query in asked:
        yield from _faults_of_task(query, answers)


def _faults_of_task(query: QueryReceived, answers: Mapping[str, Sequence[ResponseGeneration]]) -> Iterator[Violation]:
    given = answers.get(query.query_id, ())
    if len(given) != 1:
        yield Violation(Fault.ANSWERED_TWICE if given else Fault.UNANSWERED, query.query_id, query.query)
        return
    if given[0].status != ANSWERED:
        yield Violation(Fault.TASK_FAILED, query.query_id, f"{given[0].status}: {given[0].error}")
    assert query.task is not None
    calls = [call for each in answers.get(query.task.parent_query_id, ()) for call in each.tool_calls if call.result]
    told = [each for call in calls for each in json.loads(str(call.result))["results"]]
    if [each.get("answer") for each in told if each["agent"] == query.task.name] != [given[0].answer]:
        yield Violation(Fault.LEFT_OUT, query.query_id, str(told))


def _faults_of_cards(
    order: Order,
    asked: Sequence[QueryReceived],
    answers: Mapping[str, Sequence[ResponseGeneration]],
    times: Mapping[str, int],
) -> Iterator[Violation]:
    said = [answer.answer or "" for query in asked for answer in answers.get(query.query_id, ())]
    unknown = sum(UNKNOWN in text for text in said)
    for card in order.cards:
        if times.get(card, 0) > 1:
            yield Violation(Fault.STAMPED_TWICE, card, f"{times[card]} times")
    missing = [card for card in order.cards if not times.get(card, 0)]
    for card in missing[unknown:]:
        yield Violation(Fault.NOT_STAMPED, card, str(said))
