"""What a model made of the exchanges, noted once for each, with the facts it found. In a transaction of the caller."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from local.errors import NotOnRecord
from local.services.engrams import facts
from local.services.engrams.engram import Engram, Fact, Origin, Statement
from local.services.engrams.schema import stored_engram

PENDING, CLASSIFIED, UNPARSED = 0, 1, 2  # the column `classified`


class Way(StrEnum):
    """What a fact does to the others of its slot."""

    SUPERSEDE = "supersede"
    CONTRADICT = "contradict"  # nobody knows which holds
    RETRACT = "retract"  # they hold no more, and nothing takes their place


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact that a user stated, or took back: then the value says nothing."""

    way: Way
    slot: str
    value: str


@dataclass(frozen=True, slots=True)
class Classified:
    """What is to be noted of an exchange. `is_parsed` is False where the model's reply could not be read."""

    is_parsed: bool
    intent: str | None = None
    entities: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def oldest_pending(db: sqlite3.Connection) -> Engram | None:
    """The oldest exchange with the users' respondent that no model has looked at."""
    sql = "SELECT * FROM engrams WHERE classified = 0 AND searchable ORDER BY number LIMIT 1"
    row = db.execute(sql).fetchone()
    return None if row is None else stored_engram(row)


def note(db: sqlite3.Connection, engram_id: str, classified: Classified) -> list[Fact]:
    """Note what a model made of an exchange; returns the facts stated in it. Raises `NotOnRecord`.

    What was noted before stays as it is.
    """
    row = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
    if row is None:
        raise NotOnRecord(f"there is no engram {engram_id}; it may have been deleted")
    if row["classified"] == PENDING:
        db.execute(
            "UPDATE engrams SET classified = ?, intent = ?, entities = ? WHERE engram_id = ?",
            (CLASSIFIED if classified.is_parsed else UNPARSED, classified.intent,
             json.dumps(classified.entities, ensure_ascii=False), engram_id),
        )  # fmt: skip
        engram = stored_engram(row)
        for finding in classified.findings:
            _apply(db, engram, finding)
    return facts.of_engram(db, engram_id)


def _apply(db: sqlite3.Connection, engram: Engram, finding: Finding) -> None:
    stated = Statement(engram.engram_id, finding.slot, finding.value, engram.asked_at, Origin.USER)
    match finding.way:
        case Way.SUPERSEDE:
            facts.supersede(db, stated)
        case Way.CONTRADICT:
            facts.contradict(db, stated)
        case Way.RETRACT:
            facts.retract(db, engram.user_id, finding.slot, engram.asked_at)
