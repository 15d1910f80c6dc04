"""Facts as a user expects them, in ten languages, whether the model that claims them is right or errs.

A case is one message; `known` holds before it, `holds` after it, whatever of `right` or `wrong` is claimed. A claim is
`slot=value`; with `~=` the user is not sure of it, with `-=` it is taken back.
"""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.memory import facts, record
from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.statements import Claim, ClassifierReply, decide
from local.memory.store import MIGRATIONS, EngramDraft, own_words

DATA = Path(__file__).parents[1] / "data" / "fact_cases.jsonl"
_CLAIM = re.compile(r"(?P<slot>.+?)(?P<sign>[~-]?)=(?P<value>.*)")
INVENTED = ("home=Atlantis", "user's master=Vexorin")  # what a model that errs makes up besides


@dataclass(frozen=True)
class FactCase:
    """One message, what a model claims of it, and which facts hold then."""

    kind: str
    language: str
    known: Sequence[str]
    said: str
    right: Sequence[str]
    wrong: Sequence[str]
    holds: Sequence[str]

    @property
    def erring(self) -> tuple[str, ...]:
        """What a model claims that errs: too much, of the wrong person or slot, too sure, or without taking back."""
        wrong = {_bare(each) for each in self.wrong}
        return (*self.wrong, *(each for each in self.right if _bare(each) not in wrong), *INVENTED)


def _bare(claim: str) -> str:
    return claim.replace("~=", "=").replace("-=", "=")


def claim(text: str) -> Claim:
    found = _CLAIM.fullmatch(text)
    assert found, text
    return Claim(slot=found["slot"], value=found["value"], certain=found["sign"] != "~", retracts=found["sign"] == "-")


CASES = [FactCase(**json.loads(line)) for line in DATA.read_text().splitlines()]


class FactBook:
    """The facts of one user in a store in memory."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.row_factory = sqlite3.Row
        for script in ("PRAGMA foreign_keys=ON", *MIGRATIONS):
            self.db.executescript(script)
        self._numbers = itertools.count(1)

    def holds_after(self, case: FactCase, claims: Iterable[str]) -> set[str]:
        for table in ("facts", "engrams", "tombstones", "deletions"):
            self.db.execute(f"DELETE FROM {table}")
        for each in map(claim, case.known):
            self._note("so", Classified(True, findings=(FactFinding(FactOperation.ADD, each.slot, each.value),)), 0.0)
        reply = ClassifierReply(intent="statement", facts=[claim(each) for each in claims])
        found, _ = decide(reply, own_words(case.said), facts.current(self.db, "ann"))
        self._note(case.said, found, 1.0)
        current = facts.current(self.db, "ann")
        return {f"{fact.slot}{'' if fact.certain else '~'}={fact.value}" for fact in current}

    def _note(self, said: str, found: Classified, asked_at: float) -> None:
        exchange = EngramDraft(f"q{next(self._numbers)}", "s", "ann", said, "Noted.", asked_at=asked_at)
        record.ingest(self.db, exchange)
        facts.note(self.db, exchange.engram_id, found)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "erring"])
def test_what_holds_is_what_a_user_expects_whether_the_model_is_right_or_errs(is_right: bool, every: int) -> None:
    book = FactBook()
    told = [(case, book.holds_after(case, case.right if is_right else case.erring)) for case in CASES[::every]]
    assert {case.said: (holds, case.holds) for case, holds in told if holds != set(case.holds)} == {}
