"""The facts of one user in a store in memory, and what becomes of them."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Sequence

from fact_table.fact_case import claim
from local.memory import facts, record
from local.memory import facts as succession
from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.statements import ClassifierReply, decide
from local.memory.store import MIGRATIONS, EngramDraft, StatedFact, own_words


class FactBook:
    """The facts of one user in a store in memory."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA foreign_keys=ON")
        for script in MIGRATIONS:
            self.db.executescript(script)
        self._numbers = itertools.count(1)

    def tell(self, said: str, claims: Iterable[str]) -> str:
        """The user says something, a model claims that of it; returns the engram's id."""
        number = next(self._numbers)
        exchange = EngramDraft(f"q{number}", "s", "ann", said, "Noted.", asked_at=float(number))
        record.ingest(self.db, exchange)
        reply = ClassifierReply(intent="statement", facts=[claim(each) for each in claims])
        known = facts.current(self.db, "ann")
        found = decide(reply, own_words(said), known)[0]
        succession.note(self.db, exchange.engram_id, found)
        return exchange.engram_id

    def clear(self) -> None:
        """Nothing was ever said."""
        for table in ("facts", "engrams", "tombstones", "deletions"):
            self.db.execute(f"DELETE FROM {table}")

    def delete(self, engram_id: str) -> None:
        """The user has an exchange deleted."""
        row = self.db.execute("SELECT query_id FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
        record.delete(self.db, row["query_id"], 0.0)

    def know(self, claims: Sequence[str]) -> None:
        """What holds before."""
        for each in map(claim, claims):
            finding = FactFinding(FactOperation.ADD, each.slot, each.value)
            said = EngramDraft(f"k{next(self._numbers)}", "s", "ann", "so", "Noted.", asked_at=0.0)
            record.ingest(self.db, said)
            succession.note(self.db, said.engram_id, Classified(True, findings=(finding,)))

    @property
    def holds(self) -> set[str]:
        """What holds now, in the form of claims."""
        return {_told(fact) for fact in facts.current(self.db, "ann")}


def _told(fact: StatedFact) -> str:
    return f"{fact.slot}{'' if fact.certain else '~'}={fact.value}"
