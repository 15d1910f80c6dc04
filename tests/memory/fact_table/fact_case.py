"""Cases of what a user says, what a model claims of it, and which facts hold then.

A claim is `slot=value`; with `~=` the user is not sure of it, with `-=` it is taken back.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from local.memory.statements import Claim

DATA = Path(__file__).parents[2] / "data" / "fact_cases.jsonl"
_CLAIM = re.compile(r"(?P<slot>.+?)(?P<sign>[~-]?)=(?P<value>.*)")
# What a model that errs makes up besides.
INVENTED = ("home=Atlantis", "user's master=Vexorin")


@dataclass(frozen=True)
class FactCase:
    """One message; `known` holds before it, `holds` after it, whatever of `right` or `wrong` is claimed."""

    kind: str
    language: str
    known: tuple[str, ...]
    said: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    holds: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}-{self.language}-{self.said[:40]}"

    @property
    def erring(self) -> tuple[str, ...]:
        """What a model claims that errs: too much, of the wrong person or slot, too sure, or without taking back."""
        wrong = {_bare(each) for each in self.wrong}
        return (*self.wrong, *(each for each in self.right if _bare(each) not in wrong), *INVENTED)


def _bare(claim: str) -> str:
    return claim.replace("~=", "=").replace("-=", "=")


def cases() -> list[FactCase]:
    """The cases that were written by hand."""
    rows = map(json.loads, DATA.read_text().splitlines())
    return [
        FactCase(**{key: tuple(each) if isinstance(each, list) else each for key, each in row.items()}) for row in rows
    ]


def claim(text: str) -> Claim:
    """A claim in the form above."""
    found = _CLAIM.fullmatch(text)
    assert found, text
    return Claim(slot=found["slot"], value=found["value"], certain=found["sign"] != "~", retracts=found["sign"] == "-")
