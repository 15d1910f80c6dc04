"""Judges what the observers have made of a run: of every answer each thing once, and of every rating its reward."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import NamedTuple, TypeVar

from chaos_harness.judge import Violation
from chaos_harness.ratings import changes
from local.bus.messages import QueryFailed, ResponseGeneration
from local.critic.messages import CritiqueResult, PairwiseResult, RewardEvent, UserFeedback
from local.memory.messages import MemoryIngested

FIRST, SECOND = RESPONDENTS = "A", "B"
Said = ResponseGeneration | QueryFailed | MemoryIngested | CritiqueResult | PairwiseResult | UserFeedback | RewardEvent
S = TypeVar("S", bound=Said)
Rated = TypeVar("Rated", UserFeedback, RewardEvent)


class Fault(StrEnum):
    """What observers that keep the system's promises never do."""

    NOT_ANSWERED = "answer not on record"  # of either respondent
    ANSWERED_TWICE = "answer twice on record"
    FAILED = "no answer of the second respondent"
    NOT_KEPT = "no engram"
    KEPT_TWICE = "engram twice"
    NOT_TOLD = "ingestion not told"
    TOLD_TWICE = "ingestion told twice"
    NOT_GRADED = "not graded"  # nor said why not
    GRADED_TWICE = "graded twice"
    NOT_COMPARED = "not compared"
    COMPARED_TWICE = "compared twice"
    RATING_LOST = "rating lost"
    WRONG_REWARDS = "wrong rewards"  # other ones than the changes of the answer's rating, or not each once
    WRONG_NOTES = "wrong notes at the engram"  # its score, sentiment or winner
    WRONG_RUNNING_REWARD = "wrong running reward"


class Kept(NamedTuple):
    """A row of the memory's store."""

    query_id: str
    respondent_id: str
    score: float | None
    sentiment: int | None
    winner: str | None


class Learned(NamedTuple):
    """An answer's reward, as its respondent has noted it."""

    query_id: str
    respondent_id: str
    reward: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything the judge knows. `answered` are the queries, `ratings` those of their users that the system has taken,
    by query and in order, `refused` the queries with one that it has not; `said` is what is on record of them."""

    answered: Collection[str]
    ratings: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    refused: Collection[str] = ()
    said: Sequence[Said] = ()
    kept: Sequence[Kept] = ()
    learned: Sequence[Learned] = ()


def judge(evidence: Evidence) -> list[Violation]:
    """Every broken promise."""
    return [
        *_of_second_answers(evidence),
        *_of_counts(evidence),
        *_of_ratings(evidence),
        *_of_notes(evidence),
        *_of_running_rewards(evidence),
    ]


def _of_second_answers(evidence: Evidence) -> Iterator[Violation]:
    for said in evidence.said:
        if isinstance(said, QueryFailed) and said.respondent_id == SECOND:
            yield Violation(Fault.FAILED, said.query_id, said.error.message)
        elif isinstance(said, ResponseGeneration) and said.status != "answered":
            yield Violation(Fault.FAILED, said.query_id, f"{said.respondent_id}: {said.status}")


def _of_counts(evidence: Evidence) -> Iterator[Violation]:
    kinds = {
        ResponseGeneration: (Fault.NOT_ANSWERED, Fault.ANSWERED_TWICE),
        MemoryIngested: (Fault.NOT_TOLD, Fault.TOLD_TWICE),
        CritiqueResult: (Fault.NOT_GRADED, Fault.GRADED_TWICE),
    }
    both = list(product(evidence.answered, RESPONDENTS))
    for kind, faults in kinds.items():
        yield from _once(both, ((said.query_id, said.respondent_id) for said in _all(evidence, kind)), *faults)
    kept = (each[:2] for each in evidence.kept)
    yield from _once(both, kept, Fault.NOT_KEPT, Fault.KEPT_TWICE)
    compared = ((said.query_id,) for said in _all(evidence, PairwiseResult))
    each_query = ((query_id,) for query_id in evidence.answered)
    yield from _once(each_query, compared, Fault.NOT_COMPARED, Fault.COMPARED_TWICE)


def _of_ratings(evidence: Evidence) -> Iterator[Violation]:
    yield from (Violation(Fault.RATING_LOST, query_id, "it was not taken") for query_id in evidence.refused)
    on_record = _by_answer(_all(evidence, UserFeedback))
    rewards = _by_answer(_all(evidence, RewardEvent))
    for query_id in evidence.answered:
        given = list(changes(evidence.ratings.get(query_id, ())))
        rated = [feedback.rating for feedback in on_record[query_id, FIRST]]
        if list(changes(rated)) != given:
            yield Violation(Fault.RATING_LOST, query_id, f"given: {given}, on record: {rated}")
        told = [event.reward for event in rewards[query_id, FIRST]]
        if told != [float(rating or 0) for rating in changes(rated)]:
            yield Violation(Fault.WRONG_REWARDS, query_id, f"rated: {rated}, rewards: {told}")


def _of_notes(evidence: Evidence) -> Iterator[Violation]:
    scores = {(said.query_id, said.respondent_id): _score(said) for said in _all(evidence, CritiqueResult)}
    winners = {said.query_id: said.winner for said in _all(evidence, PairwiseResult)}
    for kept in evidence.kept:
        sentiment = _latest(evidence, kept.query_id) if kept.respondent_id == FIRST else None
        wanted = kept._replace(score=scores.get(kept[:2]), sentiment=sentiment, winner=winners.get(kept.query_id))
        if kept != wanted:
            yield Violation(Fault.WRONG_NOTES, kept.query_id, f"{kept}, not {wanted}")


def _of_running_rewards(evidence: Evidence) -> Iterator[Violation]:
    found = {(learned.query_id, learned.respondent_id): learned.reward for learned in evidence.learned}
    rated = {query_id for query_id, ratings in evidence.ratings.items() if any(changes(ratings))}
    wanted = {(query_id, FIRST): float(_latest(evidence, query_id) or 0) for query_id in rated}
    for key in found.keys() | wanted.keys():
        if found.get(key) != wanted.get(key):
            detail = f"{key[1]}: {found.get(key)}, not {wanted.get(key)}"
            yield Violation(Fault.WRONG_RUNNING_REWARD, key[0], detail)


def _all(evidence: Evidence, kind: type[S]) -> Iterator[S]:
    return (said for said in evidence.said if isinstance(said, kind))


def _by_answer(everything: Iterable[Rated]) -> defaultdict[tuple[str, str], list[Rated]]:
    """What was said of each answer, in the order of the ratings."""
    grouped: defaultdict[tuple[str, str], list[Rated]] = defaultdict(list)
    for said in sorted(everything, key=lambda said: said.rated_at):
        grouped[said.query_id, said.respondent_id].append(said)
    return grouped


def _once(
    wanted: Iterable[tuple[str, ...]], found: Iterable[tuple[str, ...]], missing: Fault, doubled: Fault
) -> Iterator[Violation]:
    times: Counter[Hashable] = Counter(found)
    for key in wanted:
        if times[key] != 1:
            query_id, *whose = key
            yield Violation(doubled if times[key] else missing, query_id, f"{' '.join(whose)} {times[key]} times")


def _score(said: CritiqueResult) -> float | None:
    return said.score if said.expected is None else said.expected


def _latest(evidence: Evidence, query_id: str) -> int | None:
    return next(reversed(evidence.ratings.get(query_id, ())), None)
