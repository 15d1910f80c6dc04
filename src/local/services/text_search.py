"""Words in what was asked and answered, whatever their case: found by looking through it all, so that nothing is kept
that a deletion would have to remember. In the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

AROUND = 60  # characters on each side of what was found
MOST_HITS = 1000
_ESCAPED = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


class Needle:
    """A text that is looked for. SQLite compares letters of ASCII alone without their case, so any other one stands for
    every character there, and what it lets through is looked at once more."""

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        pattern = "".join(letter if letter.isascii() else "_" for letter in text.translate(_ESCAPED))
        self._pattern, self._is_exact = f"%{pattern}%", text.isascii()

    def is_in(self, text: str | None) -> bool:
        """Whether a text has it."""
        return text is not None and self._folded in text.casefold()

    def place_in(self, text: str) -> tuple[int, int] | None:
        """Where what is sought begins and ends in a text."""
        at = text.casefold().find(self._folded)
        if at < 0:
            return None
        if len(text.casefold()) != len(text):  # letters that fold into several
            at = next((n for n in range(len(text)) if text[n:].casefold().startswith(self._folded)), 0)
        return at, at + len(self._folded)

    def condition(self, column: str, parameters: dict[str, Any]) -> str:
        """SQL that is true of a column that has it, whose parameters are added. It needs `prepare`."""
        number = len(parameters)
        parameters[f"like{number}"] = self._pattern
        like = f"{column} LIKE :like{number} ESCAPE '\\'"
        if self._is_exact:
            return like
        parameters[f"folded{number}"] = self._folded
        return f"({like} AND holds({column}, :folded{number}))"


class TextHit(NamedTuple):
    """Where something was found: query_id, whether in the query, the answer or the thinking, and the text around it."""

    query_id: str
    where: str
    excerpt: str


def prepare(db: sqlite3.Connection) -> None:
    """Make a connection able to search."""
    db.create_function("holds", 2, lambda text, folded: folded in (text or "").casefold(), deterministic=True)


def excerpt(text: str, needle: Needle) -> str:
    """A text around what was found there, on one line; its beginning if that is not there."""
    begins, ends = needle.place_in(text) or (0, 0)
    start, stop = max(0, begins - AROUND), ends + AROUND
    shown = " ".join(text[start:stop].split())
    return f"{'… ' if start else ''}{shown}{' …' if stop < len(text) else ''}"


def matches(db: sqlite3.Connection, respondent_id: str, needles: Sequence[Needle]) -> dict[str, int]:
    """The sessions with a turn in whose question and answer together all of these are: the latest turn's position."""
    parameters: dict[str, Any] = {"own": respondent_id}
    each = [f"({n.condition('query', parameters)} OR {n.condition('answer', parameters)})" for n in needles]
    sql = (
        "SELECT session_id, max(position) AS position FROM turns WHERE respondent_id = :own AND in_history"
        f" AND refused IS NULL AND {' AND '.join(each)} GROUP BY session_id"
    )
    return {row["session_id"]: row["position"] for row in db.execute(sql, parameters)}


def find_in_session(db: sqlite3.Connection, respondent_id: str, session_id: str, text: str) -> list[TextHit]:
    """Where a text stands in a session, oldest first, once for each query, answer and thinking; the first thousand."""
    needle, parameters = Needle(text), dict[str, Any](own=respondent_id, session=session_id, most=MOST_HITS)
    columns = ("query", "answer", "json_extract(outcome, '$.thinking')")
    where = " OR ".join(needle.condition(column, parameters) for column in columns)
    sql = (
        "SELECT query_id, query, answer, outcome FROM turns WHERE respondent_id = :own AND session_id = :session"
        f" AND refused IS NULL AND ({where}) ORDER BY position LIMIT :most"
    )
    hits: list[TextHit] = []
    for row in db.execute(sql, parameters):
        thinking = json.loads(row["outcome"]).get("thinking") if row["outcome"] else None
        for name, said in (("query", row["query"]), ("thinking", thinking), ("answer", row["answer"])):
            if said and needle.is_in(said):
                hits.append(TextHit(row["query_id"], name, excerpt(said, needle)))
    return hits[:MOST_HITS]
