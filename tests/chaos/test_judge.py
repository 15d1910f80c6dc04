"""The judge finds every kind of violation, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import pytest
from chaos_harness.history import Asked, Form, Outcome, Read
from chaos_harness.judge import Evidence, Fault, judge
from chaos_harness.questions import questions
from chaos_harness.sightings import Sighting

DOUBT = Outcome("answered", "The tool said: “It may or may not have happened; it is not repeated.”")
HOLE = Outcome("answered", "You told me: “My badge number is t-0.”")


@dataclass
class Run:
    """Three queries of one session, each answered and read twice; the second one has an effect."""

    asked: list[Asked]
    effects: list[str]
    turns: list[str]
    seen: list[Sighting]

    def judged(self) -> list[tuple[Fault, str]]:
        evidence = Evidence(self.asked, self.effects, {"s": self.turns}, self.seen)
        return [(fault, whose) for fault, whose, _ in judge(evidence)]

    def unanswered(self, number: int, *reads: Read) -> None:
        """As if nobody had got an answer to a query, but perhaps something else."""
        self.asked[number].reads[:] = reads
        del self.turns[number], self.seen[number]

    def answered(self, number: int, outcome: Outcome) -> None:
        """As if the answer to a query had been another one."""
        self.asked[number].reads[:] = [Read(Form.WHOLE, outcome, 9.0)]
        self.seen[number] = self.seen[number]._replace(answer=outcome.text)


@pytest.fixture
def run() -> Run:
    asked = []
    for question in islice(questions("s"), 3):
        outcome = Outcome("answered", f"I say: {question.expects}")
        each = Asked(question, Form.WHOLE, 0.0, 0.5)
        each.reads += [Read(Form.WHOLE, outcome, 1.0), Read(Form.POLL, outcome, 2.0)]
        asked.append(each)
    texts = [each.question.text for each in asked]
    effects = [each.question.text for each in asked if each.question.is_effect]
    return Run(asked, effects, texts, [Sighting(each.question.query_id, "s", each.outcome.text) for each in asked])


def never_accepted(run: Run) -> None:
    run.unanswered(2)
    run.asked[2].accepted_at = None


def in_doubt(run: Run, happened: bool) -> None:
    run.answered(1, DOUBT)
    del run.effects[happened:]


CASES: dict[str, tuple[Callable[[Run], object], list[tuple[Fault, str]]]] = {
    "a run without fault": (lambda run: None, []),
    "accepted without outcome": (lambda run: run.unanswered(2), [(Fault.LOST, "s-2")]),
    "never accepted": (never_accepted, [(Fault.LOST, "s-2")]),
    "unknown later": (lambda run: run.asked[0].forgotten_at.append(3.0), [(Fault.FORGOTTEN, "s-0")]),
    "two reads that differ": (
        lambda run: run.asked[0].reads.append(Read(Form.STREAM, Outcome("answered", "Something else about s-0."), 9.0)),
        [(Fault.TWO_OUTCOMES, "s-0")],
    ),
    "an answer that turns into a failure": (
        lambda run: run.asked[0].reads.append(Read(Form.POLL, Outcome("failed", "gave_up"), 9.0)),
        [(Fault.TWO_OUTCOMES, "s-0")],
    ),
    "a failure": (
        lambda run: run.unanswered(0, Read(Form.POLL, Outcome("failed", "gave_up"), 9.0)),
        [(Fault.FAILED, "s-0")],
    ),
    "an answer from a conversation with a hole": (lambda run: run.answered(2, HOLE), [(Fault.WRONG_ANSWER, "s-2")]),
    "an effect twice": (
        lambda run: run.effects.append(run.effects[0]),
        [(Fault.EFFECT_TWICE, "Please stamp card s-1.")],
    ),
    "an effect reported and not done": (
        lambda run: run.effects.clear(),
        [(Fault.EFFECT_MISSING, "Please stamp card s-1.")],
    ),
    "an effect in doubt that has happened": (lambda run: in_doubt(run, True), []),
    "an effect in doubt that has not": (lambda run: in_doubt(run, False), []),
    "an effect that nobody asked for": (
        lambda run: run.effects.append("Please stamp card t-1."),
        [(Fault.EFFECT_UNASKED, "Please stamp card t-1.")],
    ),
    "turns out of order": (lambda run: run.turns.reverse(), [(Fault.OUT_OF_ORDER, "s")]),
    "a turn twice": (lambda run: run.turns.append(run.turns[0]), [(Fault.OUT_OF_ORDER, "s")]),
    "a turn that is missing": (lambda run: run.turns.pop(1), [(Fault.OUT_OF_ORDER, "s")]),
    "an answer not seen": (lambda run: run.seen.pop(1), [(Fault.UNSEEN, "s-1")]),
    "another answer seen": (
        lambda run: run.seen.append(run.seen[0]._replace(answer="another")),
        [(Fault.SEEN_DIFFERENTLY, "s-0")],
    ),
    "answers seen out of order": (lambda run: run.seen.reverse(), [(Fault.SEEN_OUT_OF_ORDER, "s")]),
}


@pytest.mark.parametrize("case", CASES)
def test_each_violation_is_found_and_no_other(run: Run, case: str) -> None:
    happens, found = CASES[case]
    happens(run)
    assert run.judged() == found
