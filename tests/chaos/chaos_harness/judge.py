"""Judges a run by what its users, the outside world and an observer have seen; never by the system's own files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from chaos_harness.history import Asked

ANSWERED = "answered"


class Fault(StrEnum):
    """What a system that keeps its guarantees never does."""

    LOST = "lost"  # a query without an outcome
    FORGOTTEN = "forgotten"  # an accepted query that the system says it does not know
    TWO_OUTCOMES = "two outcomes"  # reads of one query that do not agree
    FAILED = "failed"  # no answer, though nothing was wrong with the question
    WRONG_ANSWER = "wrong answer"  # of another question, or from a conversation with a hole
    EFFECT_TWICE = "effect twice"
    EFFECT_MISSING = "effect missing"  # reported as done, and not there
    EFFECT_UNASKED = "effect unasked"
    OUT_OF_ORDER = "out of order"  # a session whose turns are not its questions, in order, each once
    UNSEEN = "unseen by the observer"
    SEEN_DIFFERENTLY = "seen differently by the observer"
    SEEN_OUT_OF_ORDER = "seen out of order by the observer"


class Violation(NamedTuple):
    """One broken promise, of a judge's own list, and whose it is: a query, a session, or the text of an effect."""

    fault: StrEnum
    whose: str
    detail: str = ""


class Seen(Protocol):
    """An answer as an observer keeps it."""

    @property
    def query_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def answer(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything the judge knows.

    `effects` are the lines outside, `sessions` the questions of each conversation as it is read back at the end, and
    `seen` the observer's answers in the order in which it got them.
    """

    asked: Sequence[Asked]
    effects: Sequence[str] = ()
    sessions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seen: Sequence[Seen] = ()


def judge(evidence: Evidence) -> list[Violation]:
    """Every violation; none for a run without fault."""
    found: list[Violation] = []
    for asked in evidence.asked:
        found += _outcome_faults(asked)
    found += _effect_faults(evidence.asked, evidence.effects)
    found += _order_faults(evidence.asked, evidence.sessions)
    found += _observer_faults(evidence.asked, evidence.seen)
    return found


def _outcome_faults(asked: Asked) -> Iterator[Violation]:
    query_id, outcome = asked.question.query_id, asked.outcome
    if asked.accepted_at is not None and asked.forgotten_at:
        yield Violation(Fault.FORGOTTEN, query_id, f"{len(asked.forgotten_at)} times")
    if outcome is None:
        accepted = "was never accepted" if asked.accepted_at is None else "was accepted"
        yield Violation(Fault.LOST, query_id, f"asked as {asked.form}; it {accepted}")
        return
    others = {read.outcome for read in asked.reads} - {outcome}
    if others:
        yield Violation(Fault.TWO_OUTCOMES, query_id, f"{outcome} and {', '.join(map(str, others))}")
    if outcome.status != ANSWERED:
        yield Violation(Fault.FAILED, query_id, f"{outcome.status}: {outcome.text}")
    elif asked.question.expects not in outcome.text and not _is_honest(asked):
        yield Violation(Fault.WRONG_ANSWER, query_id, f"expected {asked.question.expects!r} in {outcome.text!r}")


def _is_honest(asked: Asked) -> bool:
    """Whether the answer says that it is not known if the effect has happened, as it must after an interruption."""
    return asked.question.is_effect and asked.outcome is not None and "may or may not" in asked.outcome.text


def _effect_faults(everything: Iterable[Asked], effects: Iterable[str]) -> Iterator[Violation]:
    times = Counter(effects)
    asked_for = {asked.question.text: asked for asked in everything if asked.question.is_effect}
    for text, asked in asked_for.items():
        if times[text] > 1:
            yield Violation(Fault.EFFECT_TWICE, text, f"{times[text]} times")
        reported = asked.outcome is not None and asked.question.expects in asked.outcome.text
        if reported and not times[text]:
            yield Violation(Fault.EFFECT_MISSING, text)
    for text in times.keys() - asked_for.keys():
        yield Violation(Fault.EFFECT_UNASKED, text)


def _order_faults(everything: Iterable[Asked], sessions: Mapping[str, Sequence[str]]) -> Iterator[Violation]:
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    for asked in everything:
        if asked.outcome is not None and asked.outcome.status == ANSWERED:
            wanted[asked.question.session_id].append(asked.question.text)
    for session_id, texts in sessions.items():
        if list(texts) != wanted[session_id]:
            detail = _first_difference(wanted[session_id], texts)
            yield Violation(Fault.OUT_OF_ORDER, session_id, detail)


def _first_difference(wanted: Sequence[str], found: Sequence[str]) -> str:
    pairs = zip([*wanted, None], [*found, None], strict=False)
    place, (asked, kept) = next((place, pair) for place, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"turn {place}: asked was {asked!r}, kept is {kept!r}"


def _observer_faults(everything: Iterable[Asked], seen: Iterable[Seen]) -> Iterator[Violation]:
    answers: defaultdict[str, list[str]] = defaultdict(list)
    order: defaultdict[str, list[str]] = defaultdict(list)
    for sighting in seen:
        answers[sighting.query_id].append(sighting.answer)
        order[sighting.session_id].append(sighting.query_id)
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    for asked in everything:
        question, outcome = asked.question, asked.outcome
        if outcome is None or outcome.status != ANSWERED:
            continue
        if question.query_id not in answers:
            yield Violation(Fault.UNSEEN, question.query_id)
            continue
        wanted[question.session_id].append(question.query_id)
        if answers[question.query_id] != [outcome.text]:
            detail = f"answered {outcome.text!r}, seen {answers[question.query_id]}"
            yield Violation(Fault.SEEN_DIFFERENTLY, question.query_id, detail)
    for session_id, query_ids in wanted.items():
        known = set(query_ids)
        kept = list(dict.fromkeys(query_id for query_id in order[session_id] if query_id in known))
        if kept != query_ids:
            yield Violation(Fault.SEEN_OUT_OF_ORDER, session_id, _first_difference(query_ids, kept))
