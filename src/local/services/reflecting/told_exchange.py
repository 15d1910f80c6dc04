"""An exchange as a model is told of it that looks back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from local.services.judging.neutral import quoted

MOST_SIDE_CHARS: Final = 600  # of what was asked, and of what was answered


@dataclass(frozen=True, slots=True)
class ToldExchange:
    """What was asked and answered, and the engram that it is remembered as."""

    engram_id: str
    query: str
    answer: str


def numbered(exchanges: Iterable[ToldExchange]) -> list[str]:
    """Each with its number, both sides quoted and cut."""
    return [
        f"[{number}] The user said:\n{_side(each.query)}\nThe assistant answered:\n{_side(each.answer)}"
        for number, each in enumerate(exchanges, start=1)
    ]


def _side(text: str) -> str:
    return quoted(text if len(text) <= MOST_SIDE_CHARS else f"{text[:MOST_SIDE_CHARS].rstrip()} …")
