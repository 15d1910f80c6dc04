"""The store of the engrams: its tables, its one SQLite file, and the index of words in it."""

from __future__ import annotations

import asyncio
import json
import math
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import nlargest
from pathlib import Path
from typing import Self, TypeVar

from local.bus.message import MAIN_RESPONDENT
from local.core.database import OwnedDatabase, store_failure
from local.core.words import Language, indexable, terms_of
from local.memory.messages import engram_id

# One remembered exchange, its changes, and the facts that the user stated in it.

USERS_RESPONDENT = MAIN_RESPONDENT  # other respondents' answers are stored, but never found by a search


class Origin(StrEnum):
    """The origin of content. Only the user's own words become facts about the user."""

    USER = "user"
    ASSISTANT = "assistant"
    WEB = "web"
    TOOL = "tool"


class Ingested(StrEnum):
    """The result of storing an exchange."""

    NEW = "new"
    KNOWN = "known"  # stored before; the stored one stays as it is
    RATED = "rated"  # stored now or before, with a rating that arrived first and is not published yet
    DELETED = "deleted"  # the user has had it deleted; it stays so
    NOT_KEPT = "not_kept"  # of an incognito session

    @property
    def is_stored(self) -> bool:
        """Whether there is an engram of it now."""
        return self in (Ingested.NEW, Ingested.KNOWN, Ingested.RATED)


@dataclass(frozen=True, slots=True)
class EngramDraft:
    """An exchange to be stored. `asked_at` is in seconds since 1970, `recalled` the engrams that the answer is based
    on: their content from the web or a tool is part of this one, too. `tainted` means that untrusted content was in
    front of the model that answered; one that is not `by_user` states no facts.
    """

    query_id: str
    session_id: str
    user_id: str
    query: str
    answer: str
    asked_at: float
    origin: Origin = Origin.ASSISTANT
    respondent_id: str = USERS_RESPONDENT
    incognito: bool = False
    recalled: tuple[str, ...] = ()
    tainted: bool = False
    by_user: bool = True

    @property
    def engram_id(self) -> str:
        """The id it is remembered by: the same whenever it is stored, even after the store was lost."""
        return engram_id(self.query_id, self.respondent_id)


@dataclass(frozen=True, slots=True)
class AnswerRating:
    """A user's rating of an answer in a session: `sentiment` is 1 or -1, None removes the rating. `rated_at` is in
    seconds since 1970.
    """

    query_id: str
    respondent_id: str
    session_id: str
    sentiment: int | None
    rated_at: float

    @property
    def engram_id(self) -> str:
        """The id of the answer's engram, whether that is stored or not."""
        return engram_id(self.query_id, self.respondent_id)


@dataclass(frozen=True, slots=True)
class Engram:
    """A stored exchange with its later changes.

    `score` is the critic's, 1 to 5; `sentiment` the user's latest rating, -1, 1, or None; `winner` the respondent whose
    answer won a comparison, or "tie". `superseded_by` is the engram with the successors of all facts stated in this
    one. `recalled` are the engrams that the answer is based on. `intent` and `entities` are a model's later reading of
    the query. `tainted` is as in the draft. `note_of` is None except for a note of the assistant's: the query in which
    it was written; `answer` is its text, `query` its category.
    """

    engram_id: str
    query_id: str
    respondent_id: str
    session_id: str
    user_id: str
    query: str
    answer: str
    origin: Origin
    asked_at: float
    pinned: bool = False
    score: float | None = None
    sentiment: int | None = None
    winner: str | None = None
    superseded_by: str | None = None
    recalled: tuple[str, ...] = ()
    intent: str | None = None
    entities: tuple[str, ...] = ()
    tainted: bool = False
    note_of: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an engram: `what` (pinned, score, sentiment, winner, withdrawn) became `value` then."""

    at: float
    what: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact stated in an exchange. `slot` names its subject: "how I take my coffee". `origin` is whose words it is in;
    only the user's own make a fact. `certain` is False if the user was not sure, `confirmed` is False if a model claims
    it and nothing has confirmed it. `holds_from` and `holds_until` are the days, as 2026-11-27, from and until which it
    is true, empty if unknown.
    """

    engram_id: str
    slot: str
    value: str
    stated_at: float
    origin: Origin
    certain: bool = True
    confirmed: bool = True
    holds_from: str = ""
    holds_until: str = ""


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A stored statement: current as long as `superseded_at` is None, if it is `confirmed`. Of several current ones of
    one slot those that are `added` hold beside the others, as a person can have two allergies; whether one that is not
    `certain` holds is unknown. `questioned` is one that a later, unconfirmed one may have changed.
    """

    fact_id: int
    user_id: str
    engram_id: str
    slot: str
    value: str
    stated_at: float
    superseded_by: int | None = None
    superseded_at: float | None = None
    certain: bool = True
    added: bool = False
    confirmed: bool = True
    questioned: bool = False
    holds_from: str = ""
    holds_until: str = ""


def slot_key(slot: str) -> str:
    """The key of a slot, equal for every way to write it."""
    return " ".join(slot.casefold().split())


_LONG_QUOTATION = 60  # characters; less is a name or a phrase that the user uses
_FENCE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_SITE = re.compile(r"(?:https?://)?((?:[\w-]+\.)+[^\W\d]{2,})/?([.,;:!?)]*)", re.IGNORECASE)  # its name alone
_QUOTED_LINE = re.compile(r"^[^\S\n]*[>|].*$", re.MULTILINE)
_TAGGED = re.compile(r"<([a-zA-Z][\w-]*)(?=[\s/>])[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_QUOTATIONS = tuple(
    re.compile(rf"{opening}[^{closing}]*(?:[{closing}]|\Z)")
    for opening, closing in (('"', '"'), ("“", "”"), ("„", "“”"), ("«", "»"), ("»", "«"), ("「", "」"), ("『", "』"))
)
# "Summarise this mail:" – the text after that is not the user's own.
_MATERIAL = re.compile(
    r"\b(?:summari[sz]e|translate|proofread|rewrite|reword|rephrase|paraphrase|polish|tidy up|simplify|spell-?check"
    r"|formulier\w*|reformul\w*|riformul\w*|shorten|correct|improve|edit|review|analy[sz]e"
    r"|explain|classify|reply to|respond to|answer this|(?:this|the following) (?:text|mail|e-?mail|message|letter|page"
    r"|article|post|document|code|log|list|conversation|story|poem)"
    r"|fasse?|übersetze?|korrigiere?|verbessere?|résume|traduis|corrige|réécris"
    r"|resume|traduce|reescrib[ea]|riassumi|traduci|riscrivi|correggi|traduz|reescrev[ea]|corrija|resum[ae])\b"
    r"[^\n:]{0,80}:\s",
    re.IGNORECASE,
)
# What a mail program puts before a quoted mail; all text after it is another person's.
_MAIL = re.compile(
    r"^(?:[-_=> ]*(?:begin )?(?:forwarded message|original message|weitergeleitete nachricht|ursprüngliche nachricht"
    r"|message (?:transféré|d['’]origine)|mensaje (?:reenviado|original)|messaggio (?:inoltrato|originale)"
    r"|mensagem (?:encaminhada|original)|转发的?邮件|原始邮件|転送されたメッセージ)[-_=:： ]*"
    r"|(?=[^\n]*(?:@|\d[:.]\d\d))(?:on|am|le|el|il|em|op) [^\n]{6,100} (?:wrote|schrieb|a écrit|escribió|ha scritto"
    r"|escreveu|schreef)[^\n:]{0,60}[\s\u00a0]?:|(?:from|von|de|da|发件人|差出人)[:：] [^\n]{1,200}\n"
    r"(?:[^\n:：]{2,20}[:：] ?[^\n]*\n){0,5}?(?:subject|betreff|objet|asunto|oggetto|assunto|主题|件名|[^\n]*@)[^\n]*"
    r"\n)[^\S\n]*$.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
# "Let me explain:" – that is.
_OWN_ORDER = re.compile(
    r"(?:\b(?:let (?:me|us)|i|i['’]ll|(?:i|i['’]d) (?:should|must|can|will|want to|need to|have to|like to)"
    r"|lass(?:en sie)? mich|ich|laisse[rz]?[- ]moi|je|déjame|déjeme|lasciami|mi|deixa-me|deixe-me)(?: \w+)?\s+|^to )$",
    re.IGNORECASE,
)


def own_words(text: str) -> str:
    """Return the text without fences, mails of others, quoted lines, tagged spans, web addresses, long quotations, and
    text after an instruction to work on it.
    """
    for pattern in (_FENCE, _TAGGED, _MAIL, _QUOTED_LINE):
        text = pattern.sub("\n", text)
    text = _ADDRESS.sub(_site, _without_material(text))
    for pattern in _QUOTATIONS:
        text = pattern.sub(lambda found: found[0] if len(found[0]) < _LONG_QUOTATION else "\n", text)
    return text.strip()


def _without_material(text: str) -> str:
    for order in _MATERIAL.finditer(text):
        if not _OWN_ORDER.search(text[: order.start()]):
            return text[: order.start()] + "\n"
    return text


def _site(address: re.Match[str]) -> str:
    """Return a web site's name without the rest of its address; empty for an address with more than that."""
    site = _SITE.fullmatch(address[0])
    return site[1] + site[2] if site else ""


# The search for engrams by their words, in FTS5. Each is found by its own words and, with less weight, by those before
# it.

EXCHANGES_BEFORE = 2
_GIST = 10_000  # characters; the subject of a longer text is clear by then
_ANSWER_EMBEDDED = 280  # characters: 64 tokens of English. Its subject is clear by then, and each token costs time.


def add_to_index(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Index one engram together with the exchanges before it."""
    context = "\n".join(_gist(before) for before in exchanges_before(db, engram))
    sql = f"INSERT INTO {Language(engram['language'])} (rowid, exchange, context) VALUES (?, ?, ?)"
    db.execute(sql, (engram["number"], indexable(f"{engram['query']}\n{engram['answer']}"), indexable(context)))


def remove_from_index(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Take one engram out of the index."""
    db.execute(f"DELETE FROM {Language(engram['language'])} WHERE rowid = ?", (engram["number"],))


def renew_in_index(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Index an engram again, words and vector, because one before it was deleted."""
    remove_from_index(db, engram)
    add_to_index(db, engram)
    db.execute("DELETE FROM vectors WHERE number = ?", (engram["number"],))
    db.execute("UPDATE engrams SET embedded = 0, revision = revision + 1 WHERE number = ?", (engram["number"],))


def scrub(db: sqlite3.Connection) -> None:
    """Drop the words of removed engrams from the index itself, which otherwise only marks them as deleted.

    FTS5's `secure-delete` would do it row by row, but requires SQLite 3.42 in every program that opens the file
    afterwards.
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
    """Return the text of an exchange to embed: the question and the beginning of the answer."""
    return f"{engram['query'][:_GIST]}\n{engram['answer'][:_ANSWER_EMBEDDED]}"


def embeddable_context(before: Sequence[sqlite3.Row]) -> str:
    """Return the text to embed for the exchanges before one: the last of them, as it is embedded itself."""
    return embeddable(before[-1]) if before else ""


def _neighbours(db: sqlite3.Connection, engram: sqlite3.Row, where: str) -> list[sqlite3.Row]:
    """Return the neighbouring exchanges; a note has none."""
    if engram["note_of"] is not None:
        return []
    exchanges = "session_id = ? AND user_id = ? AND searchable AND note_of IS NULL"
    sql = f"SELECT * FROM engrams INDEXED BY engrams_by_session WHERE {exchanges} AND {where} LIMIT ?"
    key = (engram["session_id"], engram["user_id"], engram["number"], EXCHANGES_BEFORE)
    return db.execute(sql, key).fetchall()


def _gist(engram: sqlite3.Row) -> str:
    return f"{engram['query'][:_GIST]}\n{engram['answer'][:_GIST]}"


_MAX_POSTINGS = 4_000  # texts that one search may have to count
_GROWTH = 1.05  # document frequencies are counted again when there are that many more engrams


@dataclass(frozen=True, slots=True)
class Coverages:
    """The shares of a question's words in a user's engrams, by number: `own` is the weight of the words in the engram
    itself, 1 for all, `before` that of words only in the exchanges before it.
    """

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
        """All that may be among the best: most have less than any of those, and need no exact count."""
        least = nlargest(count, self.own.values())[-1]
        return [number for number, share in self.own.items() if share >= least]


class LexicalSearch:
    """The search by words: the share of a question's words in an engram, each word weighted by its rarity.

    That is BM25 without the length of a text and the repetition of a word: both reflect a style more than a subject,
    and cost a third of the recall@1 where nearly all texts share one word, such as a name [m]. Keeps counts between
    searches. Belongs to one thread at a time.
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
        """Return the number of texts with a word, counted no further than it matters."""
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
    """Return the rarest words that together are in no more than `postings` texts, at least one.

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
    """Whether other users have engrams here: if not, the hits need not be checked."""
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
    """As one row: half the time of thousands, and most of it without the interpreter, which a thread that embeds a
    question uses meanwhile.
    """
    (listed,) = db.execute(f"SELECT json_group_array(number) FROM ({sql})", values).fetchone()
    return set(json.loads(listed))


def _weight(frequency: int, documents: int) -> float:
    """The square of a word's inverse document frequency as in BM25: it weighs in the question and in the text."""
    if documents <= frequency:
        return 1e-6
    return max(math.log((documents - frequency + 0.5) / (frequency + 0.5)), 1e-3) ** 2


def _quoted(term: str) -> str:
    return f'"{term}"'


# SQLite knows nothing of how much each index narrows down: a query that could use several names the right one, as most
# engrams are of one user.
FILE_NAME = "engrams.db"  # in the engrams' directory
MIGRATIONS = (
    """
    CREATE TABLE engrams (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        engram_id TEXT NOT NULL UNIQUE,
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        query TEXT NOT NULL,
        answer TEXT NOT NULL,
        origin TEXT NOT NULL,
        asked_at REAL NOT NULL,
        language TEXT NOT NULL,
        searchable INTEGER NOT NULL,
        embedded INTEGER NOT NULL DEFAULT 0,
        revision INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0,
        score REAL,
        sentiment INTEGER,
        rated_at REAL,
        winner TEXT,
        superseded_by TEXT,
        recalled TEXT NOT NULL,
        classified INTEGER NOT NULL DEFAULT 0,
        intent TEXT,
        entities TEXT NOT NULL DEFAULT '[]',
        UNIQUE (query_id, respondent_id)
    );
    CREATE INDEX engrams_by_user ON engrams (user_id, asked_at);
    CREATE INDEX engrams_by_session ON engrams (session_id, number);
    CREATE INDEX engrams_not_embedded ON engrams (number) WHERE embedded = 0 AND searchable;
    CREATE INDEX engrams_not_classified ON engrams (number) WHERE classified = 0 AND searchable;
    CREATE INDEX engrams_by_language ON engrams (language) WHERE searchable;
    CREATE INDEX engrams_pinned ON engrams (user_id) WHERE pinned;
    CREATE TABLE tombstones (
        query_id TEXT PRIMARY KEY,
        deleted_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE session_tombstones (
        session_id TEXT PRIMARY KEY,
        deleted_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE deletions (
        engram_id TEXT PRIMARY KEY,
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        redacted INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE changes (
        number INTEGER NOT NULL REFERENCES engrams ON DELETE CASCADE,
        at REAL NOT NULL,
        what TEXT NOT NULL,
        value TEXT
    );
    CREATE INDEX changes_by_engram ON changes (number);
    CREATE TABLE facts (
        fact_id INTEGER PRIMARY KEY AUTOINCREMENT,
        user_id TEXT NOT NULL,
        number INTEGER NOT NULL REFERENCES engrams ON DELETE CASCADE,
        slot TEXT NOT NULL,
        slot_key TEXT NOT NULL,
        value TEXT NOT NULL,
        stated_at REAL NOT NULL,
        superseded_by INTEGER REFERENCES facts ON DELETE SET NULL,
        superseded_at REAL,
        UNIQUE (number, slot_key, value)
    );
    CREATE INDEX facts_by_slot ON facts (user_id, slot_key);
    CREATE INDEX facts_by_successor ON facts (superseded_by);
    CREATE VIRTUAL TABLE english USING fts5 (exchange, context, tokenize = 'porter unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE other USING fts5 (exchange, context, tokenize = 'unicode61 remove_diacritics 2');
    CREATE TABLE vectors (
        number INTEGER PRIMARY KEY REFERENCES engrams ON DELETE CASCADE,
        key TEXT NOT NULL UNIQUE,
        vector BLOB NOT NULL
    );
    CREATE TABLE vector_index (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        model TEXT NOT NULL DEFAULT '',
        generation TEXT NOT NULL DEFAULT '',
        is_opening INTEGER NOT NULL DEFAULT 0,
        deletions INTEGER NOT NULL DEFAULT 0,
        deletions_built INTEGER NOT NULL DEFAULT 0
    );
    INSERT INTO vector_index (id) VALUES (1);
    """,
    "CREATE INDEX engrams_unparsed ON engrams (number) WHERE classified = 2 AND searchable",
    """
    ALTER TABLE facts ADD COLUMN certain INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE facts ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE facts ADD COLUMN retracted_in INTEGER REFERENCES engrams ON DELETE SET NULL;
    CREATE INDEX facts_by_retraction ON facts (retracted_in) WHERE retracted_in IS NOT NULL;
    CREATE INDEX engrams_by_successor ON engrams (superseded_by) WHERE superseded_by IS NOT NULL;
    """,
    "CREATE INDEX engrams_rated ON engrams (user_id) WHERE sentiment IS NOT NULL",
    """
    ALTER TABLE vector_index DROP COLUMN generation;
    ALTER TABLE vector_index DROP COLUMN is_opening;
    ALTER TABLE vector_index DROP COLUMN deletions;
    ALTER TABLE vector_index DROP COLUMN deletions_built;
    """,
    """
    ALTER TABLE engrams ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0;
    UPDATE engrams SET tainted = 1
        WHERE session_id IN (SELECT session_id FROM engrams WHERE origin IN ('web', 'tool'));
    """,
    """
    ALTER TABLE engrams ADD COLUMN note_of TEXT;
    CREATE INDEX engrams_noted ON engrams (user_id) WHERE note_of IS NOT NULL;
    CREATE INDEX engrams_by_note ON engrams (note_of) WHERE note_of IS NOT NULL;
    """,
    """
    CREATE TABLE early_ratings (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        sentiment INTEGER,
        rated_at REAL NOT NULL,
        kept_at REAL NOT NULL,
        PRIMARY KEY (query_id, respondent_id)
    ) WITHOUT ROWID;
    """,
    "ALTER TABLE facts ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 1",
    "CREATE INDEX engrams_of_user ON engrams (user_id, number)",
    """
    ALTER TABLE facts ADD COLUMN holds_from TEXT NOT NULL DEFAULT '';
    ALTER TABLE facts ADD COLUMN holds_until TEXT NOT NULL DEFAULT '';
    """,
    # What is counted is in the index, or each row would be read for it.
    """
    DROP INDEX engrams_not_embedded;
    DROP INDEX engrams_not_classified;
    DROP INDEX engrams_unparsed;
    DROP INDEX engrams_by_language;
    CREATE INDEX engrams_not_embedded ON engrams (number, embedded, searchable) WHERE embedded = 0 AND searchable;
    CREATE INDEX engrams_not_classified ON engrams (number, classified, searchable) WHERE classified = 0 AND searchable;
    CREATE INDEX engrams_unparsed ON engrams (number, classified, searchable) WHERE classified = 2 AND searchable;
    CREATE INDEX engrams_by_language ON engrams (language, searchable) WHERE searchable;
    """,
)


def stored_engram(row: sqlite3.Row) -> Engram:
    """An engram from a row of its table."""
    return Engram(
        engram_id=row["engram_id"], query_id=row["query_id"], respondent_id=row["respondent_id"],
        session_id=row["session_id"], user_id=row["user_id"], query=row["query"], answer=row["answer"],
        origin=Origin(row["origin"]), asked_at=row["asked_at"], pinned=bool(row["pinned"]), score=row["score"],
        sentiment=row["sentiment"], winner=row["winner"], superseded_by=row["superseded_by"],
        recalled=_listed(row["recalled"]), intent=row["intent"], entities=_listed(row["entities"]),
        tainted=bool(row["tainted"]), note_of=row["note_of"],
    )  # fmt: skip


def _listed(column: str) -> tuple[str, ...]:
    return () if column == "[]" else tuple(json.loads(column))  # most are empty, and a search reads a hundred


T = TypeVar("T")


class Reader:
    """A second connection to the file, for reading. Reads in threads, one read at a time. The file has to exist; close
    it before its `Database`."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreFailed`."""
        self._path = path
        self._free = threading.Lock()
        try:
            self._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
            self._connection.row_factory = sqlite3.Row
        except sqlite3.Error as error:
            raise store_failure(path, error) from None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`; all it reads is of one moment. Raises `StoreFailed`."""
        return await asyncio.to_thread(self._run, work)

    async def close(self) -> None:
        """Wait for reads under way and end."""
        await asyncio.to_thread(self._close)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._free:
            try:
                self._connection.execute("BEGIN")
                try:
                    return work(self._connection)
                finally:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise store_failure(self._path, error) from None

    def _close(self) -> None:
        with self._free:
            self._connection.close()


class EngramStore:
    """The SQLite file of the engrams. Use as `async with`. The process that opened the file last is its owner: no other
    may write.

    Raises `StoreFailed`, `StoreFull` if the disk is full, and `StoreFenced` in a process that is not the owner.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._database = OwnedDatabase(self._path, MIGRATIONS)
        self.changed = asyncio.Event()  # set by every write, for one that wants to know

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        try:
            self._reader = Reader(self._path)
        except BaseException:
            await self._database.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reader.close()
        await self._database.__aexit__(*error)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, beside whatever is being written."""
        return await self._reader.run(work)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""
        value = await self._database.write(work)
        self.changed.set()
        return value

    async def write_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, in one commit with everything else that is written within a twentieth of a second."""
        value = await self._database.write_with_others(work)
        self.changed.set()
        return value

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` once the content that it deletes is in no file any more, including the write-ahead
        log.
        """
        value = await self._database.erase(work)
        self.changed.set()
        return value
