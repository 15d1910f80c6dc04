"""Answers that are published for the memory to keep: each with a word of its own, by which it has to be found."""

from __future__ import annotations

from typing import NamedTuple

from local.bus.envelope import Trace
from local.bus.messages import ResponseGeneration

USERS = ("anna", "ben", "carla")
IN_A_SESSION = 10
FACT_EVERY = 5
PLACES = ("north gate", "old mill", "second floor", "blue barn", "harbour", "glass house", "ferry", "tower")


class Remembered(NamedTuple):
    """One exchange; `word` stands in no other one's query or answer. `slot` is what the user states, if anything."""

    query_id: str
    session_id: str
    user_id: str
    word: str
    query: str
    answer: str
    slot: str = ""

    @property
    def message(self) -> ResponseGeneration:
        """As a respondent publishes it."""
        return ResponseGeneration(
            query_id=self.query_id, status="answered", query=self.query, answer=self.answer, model="stand-in"
        )

    @property
    def trace(self) -> Trace:
        """Where it belongs."""
        return Trace(self.query_id, None, self.session_id, self.user_id)

    @property
    def question(self) -> str:
        """What it answers, in another conversation."""
        return f"Where is {self.word}?"


def remembered(number: int) -> Remembered:
    """The exchange of that number. Sessions and users take turns; in every fifth one the user states a fact."""
    session = number // IN_A_SESSION
    word, place = f"w{number:05}x", PLACES[number % len(PLACES)]
    if number % FACT_EVERY:
        query, answer, slot = f"Where did we leave the crate {word}?", f"The crate {word} is at the {place}.", ""
    else:
        query, answer, slot = f"My crate {word} is at the {place}.", "Noted.", f"my crate {word}"
    user_id = USERS[session % len(USERS)]
    return Remembered(f"q{number:05}", f"s{session:04}", user_id, word, query, answer, slot)
