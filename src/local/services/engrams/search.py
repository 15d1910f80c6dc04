"""One search: words and vectors side by side, then their candidates together."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from local.services.engrams import facts, vectors
from local.services.engrams.engram import Engram
from local.services.engrams.facts import Outdated
from local.services.engrams.lexical import Coverages
from local.services.engrams.named_time import NamedTime, named_time
from local.services.engrams.ranking import Candidate, EngramHit
from local.services.engrams.store import stored_engram
from local.services.engrams.words import is_telling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


CANDIDATES = 60  # by words, by meaning and by time, each
_IN_PERIOD = 1_000  # the latest of a period that are looked at


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, best first; where nothing was relevant, `nearest` is what came closest. `degraded` says what
    could not be searched: sentences for a person."""

    hits: tuple[EngramHit, ...]
    degraded: tuple[str, ...] = ()
    nearest: tuple[EngramHit, ...] = ()


@dataclass(frozen=True, slots=True)
class EngramQuestion:
    """A question as it is searched for: the time that it names, if it does, and the words that are left then."""

    user_id: str
    words: str
    period: NamedTime | None
    not_session: str | None  # whose engrams are left out

    @classmethod
    def of(cls, user_id: str, question: str, not_session: str | None, now: float) -> Self:
        """`now` in seconds since 1970."""
        period = named_time(question, now)
        spoken = re.escape(period.spoken) if period else ""
        words = re.sub(spoken, " ", question, flags=re.IGNORECASE) if spoken else question
        return cls(user_id, words, period, not_session)

    @property
    def is_only_of_time(self) -> bool:
        """Whether all that was said then is what is asked for, as in "What did we talk about last week?"."""
        return self.period is not None and not is_telling(self.words)


def candidates(
    db: sqlite3.Connection, asked: EngramQuestion, coverages: Coverages, keys: Sequence[str], vector: Vector | None
) -> list[Candidate]:
    """Everything found by words, by vector or by its time, and what superseded it."""
    then = _numbers_in(db, asked.user_id, asked.period) if asked.period else []
    chosen = {*coverages.best(CANDIDATES), *coverages.among(then).best(CANDIDATES)}
    cosines = {} if vector is None else vectors.cosines(db, list(chosen), keys, vector)
    in_period = set(then)
    made = [
        _candidate(row, coverages, cosines, asked, in_period)
        for row in _rows(db, "number", list({*chosen, *cosines}))
        if row["user_id"] == asked.user_id and row["session_id"] != asked.not_session and not _is_past_note(row)
    ]
    return [*made, *_successors(db, made)]


def _is_past_note(row: sqlite3.Row) -> bool:
    return row["note_of"] is not None and row["superseded_by"] is not None


def _candidate(
    row: sqlite3.Row,
    coverages: Coverages,
    cosines: Mapping[int, float],
    asked: EngramQuestion,
    in_period: Container[int],
) -> Candidate:
    coverage, context = coverages.of(row["number"])
    is_then = row["number"] in in_period
    if is_then and asked.is_only_of_time:
        coverage = 1.0
    return Candidate(stored_engram(row), coverage, context, cosines.get(row["number"]), is_then)


def _numbers_in(db: sqlite3.Connection, user_id: str, period: NamedTime) -> list[int]:
    """The latest first."""
    sql = (
        "SELECT number FROM engrams WHERE user_id = ? AND asked_at >= ? AND asked_at < ? AND searchable"
        f" ORDER BY asked_at DESC LIMIT {_IN_PERIOD}"
    )
    return [number for (number,) in db.execute(sql, (user_id, period.begins, period.ends))]


def explained(db: sqlite3.Connection, hits: Iterable[EngramHit]) -> tuple[EngramHit, ...]:
    """The hits, each with what it says, or has from what was recalled for it, that holds no more."""
    return tuple(replace(hit, outdated=_outdated(db, hit.engram)) for hit in hits)


def _outdated(db: sqlite3.Connection, engram: Engram) -> tuple[Outdated, ...]:
    sources = (engram.engram_id, *engram.recalled)
    return tuple(dict.fromkeys(old for source in sources for old in facts.outdated(db, source)))


def _successors(db: sqlite3.Connection, made: Sequence[Candidate]) -> list[Candidate]:
    known = {candidate.engram.engram_id for candidate in made}
    latest, successors = [candidate.engram for candidate in made], list[Candidate]()
    while wanted := {engram.superseded_by for engram in latest if engram.superseded_by} - known:
        known |= wanted
        latest = [stored_engram(row) for row in _rows(db, "engram_id", sorted(wanted))]
        successors += map(Candidate, latest)
    return successors


def _rows(db: sqlite3.Connection, column: str, values: Sequence[int] | Sequence[str]) -> list[sqlite3.Row]:
    marks = ",".join("?" * len(values))
    return db.execute(f"SELECT * FROM engrams WHERE {column} IN ({marks})", tuple(values)).fetchall()
