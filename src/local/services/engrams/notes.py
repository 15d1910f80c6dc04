"""Notes that the assistant has made: engrams of their own, each of the query in which it was written down."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass

from local.errors import NotOnRecord
from local.services.engrams import lexical, record
from local.services.engrams.engram import USERS_RESPONDENT, Engram, Ingested, Origin, engram_id
from local.services.engrams.masking import masked
from local.services.engrams.store import stored_engram
from local.services.engrams.words import language_of

SAME_FROM = 0.9  # Jaccard similarity of the words above which a note says what an older one says
_CLASSIFIED = 1  # nobody's words about themselves are in a note
_WORD = re.compile(r"\w+")
_HOLDS = "note_of IS NOT NULL AND superseded_by IS NULL"


@dataclass(frozen=True, slots=True)
class NoteDraft:
    """What a call has written down. `replaces` begins the id of the note whose place it takes, and an empty `text` only
    withdraws that one. `recalled` and `tainted` are as those of an engram; `written_at` is in seconds since 1970."""

    call_id: str
    query_id: str
    session_id: str
    user_id: str
    text: str
    written_at: float
    category: str = ""
    replaces: str = ""
    origin: Origin = Origin.ASSISTANT
    recalled: tuple[str, ...] = ()
    tainted: bool = False

    @property
    def note_id(self) -> str:
        """The id of its engram, the same whenever it is stored."""
        return engram_id(self.call_id, USERS_RESPONDENT)


def keep(db: sqlite3.Connection, draft: NoteDraft) -> Ingested:
    """Store a note once, in place of the one that it names and of those that say the same."""
    if record.is_gone(db, (draft.query_id, draft.call_id), draft.session_id):
        return Ingested.DELETED
    text = masked(draft.text.strip())
    if not text:
        _withdraw(db, draft)
        return Ingested.KNOWN
    rows = db.execute(
        "INSERT INTO engrams (engram_id, query_id, respondent_id, session_id, user_id, query, answer, origin, asked_at,"
        " language, searchable, recalled, tainted, classified, note_of)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING *",
        (draft.note_id, draft.call_id, USERS_RESPONDENT, draft.session_id, draft.user_id, masked(draft.category), text,
         draft.origin, draft.written_at, language_of(text), json.dumps(draft.recalled), draft.tainted, _CLASSIFIED,
         draft.query_id),
    ).fetchall()  # fmt: skip
    if not rows:
        return Ingested.KNOWN
    lexical.add_to_index(db, rows[0])
    older = [note for note in current(db, draft.user_id) if note.asked_at <= draft.written_at]
    same = [note for note in older if similarity(note.answer, text) > SAME_FROM]
    _end(db, [*_named(db, draft.user_id, draft.replaces), *same], draft.note_id)
    return Ingested.NEW


def current(db: sqlite3.Connection, user_id: str) -> list[Engram]:
    """A user's notes that hold, the latest first."""
    sql = f"SELECT * FROM engrams WHERE user_id = ? AND {_HOLDS} ORDER BY asked_at DESC, number DESC"
    return [stored_engram(row) for row in db.execute(sql, (user_id,)).fetchall()]


def restore(db: sqlite3.Connection, user_id: str, note_id: str) -> None:
    """Have a note hold again that was replaced or withdrawn. Raises `NotOnRecord`."""
    if record.row_of(db, user_id, note_id)["note_of"] is None:
        raise NotOnRecord(f"the engram {note_id} is an exchange, not a note")
    db.execute("UPDATE engrams SET superseded_by = NULL WHERE engram_id = ?", (note_id,))


def similarity(one: str, other: str) -> float:
    """The Jaccard similarity of two texts' words, 0 to 1."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / len(words | others) if words | others else 1.0


def _withdraw(db: sqlite3.Connection, draft: NoteDraft) -> None:
    """Once: a note that was restored since is not withdrawn again by the same call."""
    if db.execute("SELECT 1 FROM changes WHERE what = 'withdrawn' AND value = ?", (draft.call_id,)).fetchone():
        return
    ended = _named(db, draft.user_id, draft.replaces)
    _end(db, ended, engram_id(draft.query_id, USERS_RESPONDENT))
    sql = "INSERT INTO changes SELECT number, ?, 'withdrawn', ? FROM engrams WHERE engram_id = ?"
    db.executemany(sql, [(draft.written_at, draft.call_id, note.engram_id) for note in ended])


def _named(db: sqlite3.Connection, user_id: str, beginning: str) -> list[Engram]:
    return [note for note in current(db, user_id) if beginning and note.engram_id.startswith(beginning)]


def _end(db: sqlite3.Connection, notes: list[Engram], successor: str) -> None:
    ended = [(successor, note.engram_id) for note in notes if note.engram_id != successor]
    db.executemany("UPDATE engrams SET superseded_by = ? WHERE engram_id = ?", ended)
