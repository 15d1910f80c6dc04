"""One search: words and vectors side by side, then their candidates together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from local.services.engrams import facts, vectors
from local.services.engrams.engram import Engram
from local.services.engrams.facts import Outdated
from local.services.engrams.lexical import LexicalHit
from local.services.engrams.ranking import Candidate, EngramHit
from local.services.engrams.store import stored_engram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, best first. `degraded` says what could not be searched: sentences for a person."""

    hits: tuple[EngramHit, ...]
    degraded: tuple[str, ...] = ()


def candidates(
    db: sqlite3.Connection,
    user_id: str,
    lexical: Sequence[LexicalHit],
    keys: Sequence[str],
    vector: Vector | None,
    not_session: str | None,
) -> list[Candidate]:
    """Everything found by words or by vector, and what superseded it; engrams of `not_session` are left out."""
    found = {hit.number: hit for hit in lexical}
    cosines = {} if vector is None else vectors.cosines(db, list(found), keys, vector)
    made = [
        Candidate(
            stored_engram(row),
            bm25=hit.bm25 if (hit := found.get(row["number"])) else None,
            coverage=hit.coverage if hit else None,
            cosine=cosines.get(row["number"]),
        )
        for row in _rows(db, "number", list({*found, *cosines}))
        if row["user_id"] == user_id and row["session_id"] != not_session
    ]
    return [*made, *_successors(db, made)]


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
