"""Finding engrams by their words: FTS5 with BM25. Each is found by its own and, a little, by those before it."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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


def embeddable_context(before: Iterable[sqlite3.Row]) -> str:
    """What is embedded of the exchanges before one: what was asked."""
    return "\n".join(row["query"][:_GIST] for row in before)


def _neighbours(db: sqlite3.Connection, engram: sqlite3.Row, where: str) -> list[sqlite3.Row]:
    sql = f"SELECT * FROM engrams WHERE session_id = ? AND user_id = ? AND searchable AND {where} LIMIT ?"
    key = (engram["session_id"], engram["user_id"], engram["number"], EXCHANGES_BEFORE)
    return db.execute(sql, key).fetchall()


def _gist(engram: sqlite3.Row) -> str:
    return f"{engram['query'][:_GIST]}\n{engram['answer'][:_GIST]}"


CANDIDATES = 60
CONTEXT_WEIGHT = 0.3  # of a word in the exchanges before, against one in the exchange itself
RARE = 3  # engrams: a word that no more have is there on purpose, however long the text around it
_MAX_POSTINGS = 4_000  # rows that one search may have to score
_GROWTH = 1.05  # document frequencies are counted again when there are that many more engrams


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """An engram that has words of the question. `bm25` is better the larger it is; `coverage` is its share of what an
    average text with all the words would get (Σ idf), so about 1 if it has them all. A word that is in no text counts
    like one that is in a single text. What is rare counts in a long text as in an average one. Unlike `bm25`, it can be
    compared between languages."""

    number: int
    bm25: float
    coverage: float


class LexicalSearch:
    """Keeps counts between searches. Belongs to one thread at a time."""

    def __init__(self) -> None:
        self._counted_at = 0
        self._documents: dict[Language, int] = {}
        self._frequencies: dict[tuple[Language, str], int] = {}

    def search(self, db: sqlite3.Connection, user_id: str, question: str) -> list[LexicalHit]:
        """The best hits of a user, best first."""
        self._renew(db)
        terms = terms_of(question)
        hits = [hit for table in Language for hit in self._search(db, table, user_id, terms)]
        return sorted(hits, key=lambda hit: -hit.coverage)[:CANDIDATES]

    def _search(self, db: sqlite3.Connection, table: Language, user_id: str, terms: Sequence[str]) -> list[LexicalHit]:
        frequencies = {term: self._frequency(db, table, term) for term in terms}
        wanted = affordable(frequencies, _MAX_POSTINGS)
        if not wanted:
            return []
        weights = {term: _idf(max(1, frequency), self._documents[table]) for term, frequency in frequencies.items()}
        best, rare = sum(weights.values()), _rare(db, table, {term: weights[term] for term in wanted})
        first = ",".join(map(str, rare))  # a long text with a rare word is not crowded out by many short ones without
        rows = db.execute(
            f"SELECT number, -bm25({table}, 1.0, ?) AS bm25 FROM {table} JOIN engrams ON number = {table}.rowid"
            f" WHERE {table} MATCH ? AND user_id = ? ORDER BY number IN ({first}) DESC, bm25 DESC LIMIT ?",
            (CONTEXT_WEIGHT, " OR ".join(_quoted(term) for term in wanted), user_id, CANDIDATES),
        ).fetchall()
        return [
            LexicalHit(row["number"], row["bm25"], max(row["bm25"], rare.get(row["number"], 0.0)) / best)
            for row in rows
        ]

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


def _rare(db: sqlite3.Connection, table: Language, weights: Mapping[str, float]) -> dict[int, float]:
    """Engrams by number that have words of their own that are rare, and the sum of these words' weights."""
    found: dict[int, float] = {}
    sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT {RARE + 1}"
    for term, weight in weights.items():
        numbers = [number for (number,) in db.execute(sql, (f"exchange : {_quoted(term)}",))]
        for number in numbers if len(numbers) <= RARE else ():
            found[number] = found.get(number, 0.0) + weight
    return found


def _idf(frequency: int, documents: int) -> float:
    """The weight of a word, as in FTS5's bm25()."""
    return max(math.log((documents - frequency + 0.5) / (frequency + 0.5)), 1e-6) if documents > frequency else 1e-6


def _quoted(term: str) -> str:
    return f'"{term}"'
