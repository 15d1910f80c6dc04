"""Finding engrams by their words, in FTS5. Each is found by its own and, a little, by those before it."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Self

from local.services.engrams.words import Language, indexable, terms_of

EXCHANGES_BEFORE = 2
_GIST = 10_000  # characters; what a longer text is about has been said by then


def add_to_index(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Index one engram together with the exchanges before it."""
    context = "\n".join(_gist(before) for before in exchanges_before(db, engram))
    sql = f"INSERT INTO {Language(engram['language'])} (rowid, exchange, context) VALUES (?, ?, ?)"
    db.execute(sql, (engram["number"], indexable(f"{engram['query']}\n{engram['answer']}"), indexable(context)))


def remove_from_index(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Take one engram out of the index."""
    db.execute(f"DELETE FROM {Language(engram['language'])} WHERE rowid = ?", (engram["number"],))


def renew_in_index(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Index an engram again, words and vector, because one before it is gone."""
    remove_from_index(db, engram)
    add_to_index(db, engram)
    db.execute("DELETE FROM vectors WHERE number = ?", (engram["number"],))
    db.execute("UPDATE engrams SET embedded = 0, revision = revision + 1 WHERE number = ?", (engram["number"],))


def scrub(db: sqlite3.Connection) -> None:
    """Drop the words of removed engrams from the index itself, which otherwise only notes that they are gone.

    FTS5's `secure-delete` would do it row by row, but needs SQLite 3.42 in whatever opens the file from then on.
    """
    for table in Language:
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def exchanges_before(db: sqlite3.Connection, engram: sqlite3.Row) -> list[sqlite3.Row]:
    """The one or two exchanges before this one in its session, oldest first."""
    return _neighbours(db, engram, "number < ? ORDER BY number DESC")[::-1]


def exchanges_after(db: sqlite3.Connection, engram: sqlite3.Row) -> list[sqlite3.Row]:
    """The exchanges that are indexed together with this one."""
    return _neighbours(db, engram, "number > ? ORDER BY number")


def embeddable(engram: sqlite3.Row) -> str:
    """What is embedded of an exchange."""
    return _gist(engram)


def embeddable_context(before: Sequence[sqlite3.Row]) -> str:
    """What is embedded of the exchanges before one: the last of them, as it is embedded itself."""
    return embeddable(before[-1]) if before else ""


def _neighbours(db: sqlite3.Connection, engram: sqlite3.Row, where: str) -> list[sqlite3.Row]:
    """Exchanges; a note stands for itself."""
    if engram["note_of"] is not None:
        return []
    exchanges = "session_id = ? AND user_id = ? AND searchable AND note_of IS NULL"
    sql = f"SELECT * FROM engrams WHERE {exchanges} AND {where} LIMIT ?"
    key = (engram["session_id"], engram["user_id"], engram["number"], EXCHANGES_BEFORE)
    return db.execute(sql, key).fetchall()


def _gist(engram: sqlite3.Row) -> str:
    return f"{engram['query'][:_GIST]}\n{engram['answer'][:_GIST]}"


_MAX_POSTINGS = 4_000  # texts that one search may have to count
_GROWTH = 1.05  # document frequencies are counted again when there are that many more engrams


@dataclass(frozen=True, slots=True)
class Coverages:
    """How much of a question's words a user's engrams have, by their numbers: `own` is the share of the words' weight
    that each has itself, 1 if it has them all, `before` the share of those that only the exchanges before it have."""

    own: dict[int, float] = field(default_factory=dict)
    before: dict[int, float] = field(default_factory=dict)

    def of(self, number: int) -> tuple[float, float]:
        """The two shares of an engram; those of one that was not found are 0."""
        return self.own.get(number, 0.0), self.before.get(number, 0.0)

    def among(self, numbers: Iterable[int]) -> Self:
        """The shares of these engrams alone, whether they were found or not."""
        chosen = set(numbers)
        own, before = ({number: shares.get(number, 0.0) for number in chosen} for shares in (self.own, self.before))
        return type(self)(own, before)

    def best(self, count: int) -> list[int]:
        """The numbers of the engrams that have most of the words; of equals, the latest."""
        some = self._with_most(count) if len(self.own) > count else {*self.own, *self.before}
        return [number for *_, number in nlargest(count, ((*self.of(number), number) for number in some))]

    def _with_most(self, count: int) -> list[int]:
        """All that may be among the best: most have less than any of those, and need no closer look."""
        least = nlargest(count, self.own.values())[-1]
        return [number for number, share in self.own.items() if share >= least]


class LexicalSearch:
    """How much of a question's words an engram has, each word as heavy as it is rare.

    That is what BM25 has beyond the length of a text and how often it repeats a word: both say more of how somebody
    talks than of what about, and cost a third of the recall@1 where nearly all have one word, as a name [m]. Keeps
    counts between searches. Belongs to one thread at a time.
    """

    def __init__(self) -> None:
        self._counted_at = 0
        self._documents: dict[Language, int] = {}
        self._frequencies: dict[tuple[Language, str], int] = {}

    def search(self, db: sqlite3.Connection, user_id: str, question: str) -> Coverages:
        """A user's engrams that have a word of the question."""
        self._renew(db)
        terms, found = terms_of(question), Coverages()
        for table in Language if terms else ():
            self._search(db, table, user_id, terms, found)
        return found

    def _search(
        self, db: sqlite3.Connection, table: Language, user_id: str, terms: Sequence[str], found: Coverages
    ) -> None:
        """Adds to `found`."""
        frequencies = {term: self._frequency(db, table, term) for term in terms}
        weights = {term: _weight(max(1, frequency), self._documents[table]) for term, frequency in frequencies.items()}
        best = sum(weights.values())
        find = _own_of if _is_shared(db, user_id) else _all_of
        for term in affordable(frequencies, _MAX_POSTINGS):
            having = find(db, table, user_id, f"exchange : {_quoted(term)}")
            _add(found.own, having, weights[term] / best)
            _add(found.before, find(db, table, user_id, f"context : {_quoted(term)}") - having, weights[term] / best)

    def _frequency(self, db: sqlite3.Connection, table: Language, term: str) -> int:
        """In how many texts a word is, counted no further than it matters."""
        key = (table, term)
        if key not in self._frequencies:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT {_MAX_POSTINGS + 1})"
            self._frequencies[key] = db.execute(sql, (_quoted(term),)).fetchone()[0]
        return self._frequencies[key]

    def _renew(self, db: sqlite3.Connection) -> None:
        (last,) = db.execute("SELECT coalesce(max(number), 0) FROM engrams").fetchone()
        if last <= self._counted_at * _GROWTH and self._documents:
            return
        self._counted_at = last
        self._frequencies.clear()
        sql = "SELECT count(*) FROM engrams WHERE language = ? AND searchable"
        self._documents = {table: db.execute(sql, (table,)).fetchone()[0] for table in Language}


def affordable(frequencies: Mapping[str, int], postings: int) -> list[str]:
    """The rarest words that together are in no more than `postings` texts, at least one.

    Those in no text are kept: they cost nothing, and the count may be older than the text that has them.
    """
    chosen: list[str] = []
    for frequency, term in sorted((frequency, term) for term, frequency in frequencies.items()):
        postings -= frequency
        if postings < 0 and any(frequencies[other] for other in chosen):
            break
        chosen.append(term)
    return chosen


def _add(shares: dict[int, float], numbers: Iterable[int], share: float) -> None:
    for number in numbers:
        shares[number] = shares.get(number, 0.0) + share


def _is_shared(db: sqlite3.Connection, user_id: str) -> bool:
    """Whether others have engrams here: if not, none of those found has to be looked at."""
    some = "EXISTS (SELECT 1 FROM engrams WHERE user_id {} ?1)".format
    sql = f"SELECT {some('<')} OR {some('>')}"
    return bool(db.execute(sql, (user_id,)).fetchone()[0])


def _all_of(db: sqlite3.Connection, table: Language, user_id: str, match: str) -> set[int]:
    sql = f"SELECT rowid AS number FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT {_MAX_POSTINGS}"
    return _numbers(db, sql, match)


def _own_of(db: sqlite3.Connection, table: Language, user_id: str, match: str) -> set[int]:
    sql = (
        f"SELECT number FROM {table} JOIN engrams ON number = {table}.rowid"
        f" WHERE {table} MATCH ? AND user_id = ? ORDER BY {table}.rowid DESC LIMIT {_MAX_POSTINGS}"
    )
    return _numbers(db, sql, match, user_id)


def _numbers(db: sqlite3.Connection, sql: str, *values: str) -> set[int]:
    """As one row: half the time of thousands, and most of it without Python, which a question that is embedded in
    another thread has meanwhile."""
    (listed,) = db.execute(f"SELECT json_group_array(number) FROM ({sql})", values).fetchone()
    return set(json.loads(listed))


def _weight(frequency: int, documents: int) -> float:
    """The square of a word's inverse document frequency as in BM25: it weighs in the question and in the text."""
    if documents <= frequency:
        return 1e-6
    return max(math.log((documents - frequency + 0.5) / (frequency + 0.5)), 1e-3) ** 2


def _quoted(term: str) -> str:
    return f'"{term}"'
