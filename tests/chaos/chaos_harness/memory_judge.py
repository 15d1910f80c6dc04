"""Judges what a memory that was killed again and again has kept, and what it has answered meanwhile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from chaos_harness.remembered import Remembered
from local.memory.messages import MemoryResult, RecalledEngram

WHILE_IT_IS_DOWN = frozenset({"timeout", "unavailable"})
_EXCEPTION_TEXT = re.compile(r"Traceback|\w(?:Error|Exception)\b|\bsqlite3?\.|0x[0-9a-f]{6,}|<class ")


class Fault(StrEnum):
    """What a memory that keeps its guarantees never does."""

    LOST = "lost"  # an answer of which there is no engram
    TWICE = "twice"  # … or more than one
    CHANGED = "changed"  # an engram that is not what was answered, or of nobody
    UNTOLD = "not told"  # an engram that nobody was told of
    TOLD_TWICE = "told twice"
    FACT_LOST = "fact lost"
    FACT_TWICE = "fact twice"
    NOT_INDEXED = "not indexed"  # an engram without its vector, or one whose vector is not in the index
    INDEXED_UNKNOWN = "indexed, and unknown"  # a vector in the index that is of no engram
    NOT_FOUND = "not found"  # by its word, though its ingestion was told
    STRANGERS = "found for a stranger"
    INVENTED = "invented"  # a hit with a text that was never stored
    BAD_ERROR = "bad error"  # of another kind than a memory that is down may cause, or an exception's text


class Violation(NamedTuple):
    """One broken promise and whose it is: a query or a question."""

    fault: Fault
    whose: str
    detail: str = ""


class Kept(NamedTuple):
    """A row of the memory's store."""

    query_id: str
    session_id: str
    user_id: str
    query: str
    answer: str


class Search(NamedTuple):
    """One search: what was looked for, on whose behalf, whether its ingestion had been told before, and the answer,
    None if there was none in time."""

    wanted: Remembered
    user_id: str
    was_told: bool
    result: MemoryResult | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything the judge knows. `told` are the query ids of all `memory.ingested` on record, `facts` pairs of query
    id and slot; `vectors` the keys of the vectors by query id, `index` those of all that there are to be searched."""

    published: Sequence[Remembered]
    kept: Sequence[Kept] = ()
    told: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    vectors: Mapping[str, str] = field(default_factory=dict)
    index: frozenset[str] = frozenset()
    searches: Sequence[Search] = ()


def judge(evidence: Evidence) -> list[Violation]:
    """Every broken promise."""
    return [
        *_of_the_store(evidence),
        *_of_what_was_told(evidence),
        *_of_facts(evidence),
        *_of_the_index(evidence),
        *_of_searches(evidence),
    ]


def _of_the_store(evidence: Evidence) -> Iterator[Violation]:
    times = Counter(kept.query_id for kept in evidence.kept)
    yield from _exactly_once((each.query_id for each in evidence.published), times, Fault.LOST, Fault.TWICE)
    published = set(map(_as_kept, evidence.published))
    yield from (Violation(Fault.CHANGED, kept.query_id, repr(kept)) for kept in evidence.kept if kept not in published)


def _of_what_was_told(evidence: Evidence) -> Iterator[Violation]:
    ids = (each.query_id for each in evidence.published)
    yield from _exactly_once(ids, Counter(evidence.told), Fault.UNTOLD, Fault.TOLD_TWICE)


def _of_facts(evidence: Evidence) -> Iterator[Violation]:
    stated = [(each.query_id, each.slot) for each in evidence.published if each.slot]
    names = {" ".join(fact): fact for fact in (*stated, *evidence.facts)}
    times = Counter(" ".join(fact) for fact in evidence.facts)
    yield from _exactly_once(map(" ".join, stated), times, Fault.FACT_LOST, Fault.FACT_TWICE)
    yield from (Violation(Fault.INVENTED, *fact) for fact in names.values() if fact not in stated)


def _of_the_index(evidence: Evidence) -> Iterator[Violation]:
    for each in evidence.published:
        if evidence.vectors.get(each.query_id) not in evidence.index:
            yield Violation(Fault.NOT_INDEXED, each.query_id)
    yield from (Violation(Fault.INDEXED_UNKNOWN, key) for key in evidence.index - set(evidence.vectors.values()))


def _of_searches(evidence: Evidence) -> Iterator[Violation]:
    published = {each.query_id: each for each in evidence.published}
    for search in evidence.searches:
        if search.result is not None:
            yield from _of_search(search, search.result, published)


def _of_search(search: Search, result: MemoryResult, published: Mapping[str, Remembered]) -> Iterator[Violation]:
    whose = f"{search.user_id}: {search.wanted.question}"
    if result.error is not None:
        if result.error.kind not in WHILE_IT_IS_DOWN or _EXCEPTION_TEXT.search(result.error.message):
            yield Violation(Fault.BAD_ERROR, whose, f"{result.error.kind}: {result.error.message}")
        return
    for note in result.degraded:
        if _EXCEPTION_TEXT.search(note):
            yield Violation(Fault.BAD_ERROR, whose, note)
    for hit in result.hits:
        stored = published.get(hit.query_id)
        if stored is None or _as_kept(stored)[3:] != (hit.query, hit.answer):
            yield Violation(Fault.INVENTED, whose, hit.query)
        elif stored.user_id != search.user_id:
            yield Violation(Fault.STRANGERS, whose, hit.query)
    if search.was_told and search.user_id == search.wanted.user_id and not _has(result.hits, search.wanted):
        yield Violation(Fault.NOT_FOUND, whose, f"found: {[hit.query_id for hit in result.hits]}, {result.degraded}")


def _has(hits: Iterable[RecalledEngram], wanted: Remembered) -> bool:
    return any(hit.query_id == wanted.query_id for hit in hits)


def _as_kept(each: Remembered) -> Kept:
    return Kept(each.query_id, each.session_id, each.user_id, each.query, each.answer)


def _exactly_once(
    wanted: Iterable[str], times: Mapping[str, int], missing: Fault, doubled: Fault
) -> Iterator[Violation]:
    for name in wanted:
        if times.get(name, 0) != 1:
            yield Violation(doubled if times.get(name) else missing, name, f"{times.get(name, 0)} times")
