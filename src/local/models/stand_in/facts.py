"""The few things the stand-in knows: enough for a first conversation, never more than is written here."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """`text` answers a question that matches every one of the patterns `about`."""

    about: tuple[str, ...]
    text: str


# The more special fact stands first: the first that matches is the answer.
FACTS = (
    Fact((r"capital", r"\bfrance\b"), "The capital of France is Paris."),
    Fact((r"capital", r"\bgermany\b"), "The capital of Germany is Berlin."),
    Fact((r"capital", r"\bitaly\b"), "The capital of Italy is Rome."),
    Fact((r"capital", r"\bjapan\b"), "The capital of Japan is Tokyo."),
    Fact(
        (r"\bgil\b|global interpreter lock", r"\bwhy\b|introduced|reason"),
        "The GIL was introduced because CPython manages memory by reference counting: one lock around the interpreter "
        "keeps those counts right without a lock on every object, and it made C extensions simple to write.",
    ),
    Fact(
        (r"\bgil\b|global interpreter lock",),
        "The GIL (Global Interpreter Lock) is a mutex in CPython that lets only one thread execute Python bytecode at "
        "a time. It protects reference counts and limits CPU-bound threads; Python 3.13 has a build without it.",
    ),
    Fact((r"boil", r"water"), "Water boils at 100 °C (212 °F) at sea level."),
    Fact((r"speed of light",), "Light travels at 299,792,458 metres a second in a vacuum."),
)


def look_up(question: str) -> str | None:
    """The fact that answers the question, or None."""
    lower = question.lower()
    for fact in FACTS:
        if all(re.search(pattern, lower) for pattern in fact.about):
            return fact.text
    return None
