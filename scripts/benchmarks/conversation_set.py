"""Conversations that were written by hand, line by line and before anybody looked at how the search ranks: those of one
person with two friends and with an assistant, over ten months, and what may be asked of them.

`conversations.txt` has them, each under its day and those who speak, each exchange with its number. Below them are the
questions, each with the exchanges that answer it: `1.12+11.18` are both needed, of `2.2,2.24` either will do. Those
under "never told" have no answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from local.memory.store import EngramDraft

USER = "ines"
_TALK = re.compile(r"# (\S+) (\w+) & (\w+)")
_EXCHANGE = re.compile(r"(\d+) (.*) \|\| (.*)")


@dataclass(frozen=True, slots=True)
class ConversationQuestion:
    """What is asked, and for each thing that its answer needs the engrams that tell it: none if it has no answer."""

    text: str
    answers: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class ConversationSet:
    """The exchanges in order of time, all of one memory, and the questions."""

    exchanges: list[EngramDraft]
    questions: list[ConversationQuestion]


def read_conversations() -> ConversationSet:
    """The set as it was written."""
    talks, *asked = Path(__file__).with_name("conversations.txt").read_text("utf-8").split("\n## ")
    exchanges = {
        f"{number}.{place}": exchange
        for number, talk in enumerate(talks.split("\n\n"), start=1)
        for place, exchange in enumerate(_exchanges(number, talk.splitlines()), start=1)
    }
    questions = [_question(line, exchanges) for block in asked for line in block.splitlines()[1:] if line]
    return ConversationSet(list(exchanges.values()), questions)


def _exchanges(number: int, lines: list[str]) -> list[EngramDraft]:
    day, *speakers = _matched(_TALK, lines[0])
    begins = datetime.fromisoformat(f"{day}T20:00:00+00:00").timestamp()
    return [
        EngramDraft(f"{number}/{place}", str(number), USER, *_lines(line, place, speakers), begins + 60 * place)
        for place, line in enumerate(lines[1:], start=1)
    ]


def _lines(line: str, place: int, speakers: list[str]) -> tuple[str, str]:
    """What the two say in an exchange; friends' names are before it, as in most records of talk."""
    told, *said = _matched(_EXCHANGE, line)
    if int(told) != place:
        raise ValueError(f"exchange {place} has the number {told}")
    first, second = said if "assistant" in speakers else map(": ".join, zip(speakers, said, strict=True))
    return first, second


def _question(line: str, exchanges: Mapping[str, EngramDraft]) -> ConversationQuestion:
    text, _, places = line.partition(" |")
    needed = [each.split(",") for each in places.strip().split("+") if each]
    return ConversationQuestion(
        text, tuple(frozenset(exchanges[place].engram_id for place in either) for either in needed)
    )


def _matched(pattern: re.Pattern[str], line: str) -> tuple[str, ...]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError(f"not understood: {line}")
    return found.groups()
