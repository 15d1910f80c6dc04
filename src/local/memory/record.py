"""Exchanges, ratings, deletions, notes and edits by hand in their tables. Functions run in the caller's transaction."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from local.core.errors import NotOnRecord
from local.core.text import masked
from local.core.words import language_of
from local.memory import facts
from local.memory import facts as succession
from local.memory import store as lexical
from local.memory.facts import CLASSIFIED, PENDING, FactFinding
from local.memory.messages import OnlySome, engram_id
from local.memory.store import (
    USERS_RESPONDENT,
    AnswerRating,
    Change,
    Engram,
    EngramDraft,
    Ingested,
    Origin,
    StatedFact,
    Statement,
    slot_key,
    stored_engram,
)

# Ratings of answers that are not stored yet: an answer that was streamed can be rated before it is recorded, and the
# rating then arrives first. Every function runs in a transaction of its caller's.

KEPT_SECONDS = 7 * 24 * 3600.0  # an answer that has not come by then is one that is not remembered


def keep(db: sqlite3.Connection, rating: AnswerRating, now: float) -> None:
    """Keep a rating until its answer comes, in place of an earlier one."""
    db.execute("DELETE FROM early_ratings WHERE kept_at < ?", (now - KEPT_SECONDS,))
    db.execute(
        "INSERT INTO early_ratings VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET sentiment = excluded.sentiment, rated_at = excluded.rated_at WHERE excluded.rated_at >= rated_at",
        (rating.query_id, rating.respondent_id, rating.session_id, rating.sentiment, rating.rated_at, now),
    )


def find(db: sqlite3.Connection, query_id: str, respondent_id: str) -> AnswerRating | None:
    """The rating that was kept for an answer, and is not settled."""
    row = db.execute(f"SELECT * FROM early_ratings WHERE {_OF_ANSWER}", (query_id, respondent_id)).fetchone()
    return None if row is None else AnswerRating(*row[:5])


def settle(db: sqlite3.Connection, query_id: str, respondent_id: str) -> None:
    """Remove a rating whose answer is stored and whose publication is done."""
    db.execute(f"DELETE FROM early_ratings WHERE {_OF_ANSWER}", (query_id, respondent_id))


def forget_session(db: sqlite3.Connection, session_id: str) -> None:
    """Remove the ratings for answers of a deleted session."""
    db.execute("DELETE FROM early_ratings WHERE session_id = ?", (session_id,))


_OF_ANSWER = "query_id = ? AND respondent_id = ?"


def ingest(db: sqlite3.Connection, exchange: EngramDraft, findings: Sequence[FactFinding] = ()) -> Ingested:
    """Store an exchange once, without the secrets in it and with the facts that were found in it, index its words, and
    note a rating that came before it."""
    if is_gone(db, (exchange.query_id,), exchange.session_id):
        return Ingested.DELETED
    query, answer = masked(exchange.query), masked(exchange.answer)
    row = db.execute(
        "INSERT INTO engrams (engram_id, query_id, respondent_id, session_id, user_id, query, answer, origin, asked_at,"
        " language, searchable, recalled, tainted, classified) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING RETURNING *",
        (exchange.engram_id, exchange.query_id, exchange.respondent_id, exchange.session_id, exchange.user_id, query,
         answer, _origin(db, exchange), exchange.asked_at, language_of(f"{query}\n{answer}"),
         exchange.respondent_id == USERS_RESPONDENT, json.dumps(exchange.recalled), exchange.tainted,
         PENDING if exchange.by_user else CLASSIFIED),
    ).fetchall()  # fmt: skip
    early = find(db, exchange.query_id, exchange.respondent_id)
    if row and row[0]["searchable"]:
        lexical.add_to_index(db, row[0])
    if row:
        succession.apply(db, stored_engram(row[0]), findings)
    if early is not None:
        rate(db, early, early.rated_at)
        return Ingested.RATED
    return Ingested.NEW if row else Ingested.KNOWN


def engram(db: sqlite3.Connection, user_id: str, engram_id: str) -> Engram:
    """Return an engram of a user. Raises `NotOnRecord`, also if it is another user's."""
    return stored_engram(row_of(db, user_id, engram_id))


ONLY: Final[Mapping[OnlySome, str]] = {
    "pinned": "pinned",
    "rated": "sentiment IS NOT NULL",
    "poor": "(score <= 2 OR sentiment < 0)",
    "untrusted": "(tainted OR origin IN ('web', 'tool'))",
}


def recent(
    db: sqlite3.Connection, user_id: str, limit: int, before: tuple[float, str], only: OnlySome | None = None
) -> list[Engram]:
    """A user's engrams before a time and engram_id, the latest first, of one time by id; what other respondents said is
    no user's business. With `only` some of them."""
    sql = (
        "SELECT * FROM engrams WHERE user_id = ? AND (asked_at, engram_id) < (?, ?) AND respondent_id = ?"
        f" AND {ONLY[only] if only else 'TRUE'} ORDER BY asked_at DESC, engram_id DESC LIMIT ?"
    )
    return [stored_engram(row) for row in db.execute(sql, (user_id, *before, USERS_RESPONDENT, limit)).fetchall()]


def pinned(db: sqlite3.Connection, user_id: str) -> list[Engram]:
    """Return a user's pinned engrams, in the order of pinning."""
    sql = (
        "SELECT * FROM engrams INDEXED BY engrams_pinned WHERE user_id = ? AND pinned ORDER BY"
        " (SELECT max(changes.rowid) FROM changes WHERE changes.number = engrams.number AND what = 'pinned')"
    )
    return [stored_engram(row) for row in db.execute(sql, (user_id,)).fetchall()]


def users_with_context(db: sqlite3.Connection) -> list[str]:
    """The users who have a current fact or a pin."""
    sql = "SELECT user_id FROM facts WHERE superseded_at IS NULL UNION SELECT user_id FROM engrams WHERE pinned"
    return [row["user_id"] for row in db.execute(sql).fetchall()]


def pin(db: sqlite3.Connection, user_id: str, engram_id: str, value: int, now: float) -> None:
    """Pin an engram (1) or take the pin out (0). Raises `NotOnRecord`."""
    _change(db, row_of(db, user_id, engram_id), "pinned", value, now)


def grade(db: sqlite3.Connection, engram_id: str, score: float | None, now: float) -> bool:
    """Store the critic's score, None if it gave none; False if there is no such engram."""
    row = _find(db, engram_id)
    return row is not None and _change(db, row, "score", score, now)


def rate(db: sqlite3.Connection, rating: AnswerRating, now: float) -> bool:
    """Note the user's rating, or keep it until its engram comes; False if it is not noted: a later one may be known."""
    row = _find(db, rating.engram_id)
    if row is None and not is_gone(db, (rating.query_id,), rating.session_id):
        keep(db, rating, now)
    if row is None or (row["rated_at"] or rating.rated_at) > rating.rated_at:
        return False
    db.execute("UPDATE engrams SET rated_at = ? WHERE number = ?", (rating.rated_at, row["number"]))
    return _change(db, row, "sentiment", rating.sentiment, rating.rated_at)


def compare(db: sqlite3.Connection, engram_id: str, winner: str, now: float) -> bool:
    """Store whose answer won a comparison, or "tie"; False if there is no such engram."""
    row = _find(db, engram_id)
    return row is not None and _change(db, row, "winner", winner, now)


def changes(db: sqlite3.Connection, user_id: str, engram_id: str) -> list[Change]:
    """Return every change of one of a user's engrams, oldest first. Raises `NotOnRecord`."""
    number = row_of(db, user_id, engram_id)["number"]
    rows = db.execute("SELECT at, what, value FROM changes WHERE number = ? ORDER BY rowid", (number,)).fetchall()
    return [Change(row["at"], row["what"], row["value"]) for row in rows]


def repeated_in(db: sqlite3.Connection, user_id: str, engram_id: str) -> tuple[str, ...]:
    """A user's engrams of the queries in which an answer rests on this engram, one for each query, oldest first."""
    # If only another respondent's answer matches, the user's own represents it: min() chooses the row.
    sql = (
        "SELECT engram_id, min(respondent_id) FROM engrams WHERE query_id IN"
        " (SELECT query_id FROM engrams WHERE user_id = ? AND instr(recalled, ?)) GROUP BY query_id ORDER BY number"
    )
    return tuple(row["engram_id"] for row in db.execute(sql, (user_id, json.dumps(engram_id))).fetchall())


def session_repeated_in(db: sqlite3.Connection, session_id: str) -> tuple[str, ...]:
    """The engrams in other sessions that had recalled something of this one, as in `repeated_in`."""
    sql = (
        "SELECT engram_id, min(respondent_id) FROM engrams WHERE session_id != ?1 AND query_id IN (SELECT query_id"
        " FROM engrams, json_each(recalled) WHERE recalled != '[]' AND value IN"
        " (SELECT engram_id FROM engrams WHERE session_id = ?1)) GROUP BY query_id ORDER BY number"
    )
    return tuple(row["engram_id"] for row in db.execute(sql, (session_id,)).fetchall())


def _origin(db: sqlite3.Connection, exchange: EngramDraft) -> Origin:
    """Return the origin of an answer's content, also by way of recalled engrams: recalling does not make content more
    trustworthy.
    """
    marks = ",".join("?" * len(exchange.recalled))
    rows = db.execute(f"SELECT DISTINCT origin FROM engrams WHERE engram_id IN ({marks})", exchange.recalled).fetchall()
    origins = {exchange.origin, *(Origin(row["origin"]) for row in rows)}
    return next((origin for origin in (Origin.WEB, Origin.TOOL) if origin in origins), exchange.origin)


def _change(db: sqlite3.Connection, row: sqlite3.Row, what: str, value: float | str | None, at: float) -> bool:
    if row[what] != value:
        db.execute(f"UPDATE engrams SET {what} = ? WHERE number = ?", (value, row["number"]))
        told = f"{value:g}" if isinstance(value, int | float) else value
        db.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", (row["number"], at, what, told))
    return True


def _find(db: sqlite3.Connection, engram_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
    return row


def row_of(db: sqlite3.Connection, user_id: str, engram_id: str) -> sqlite3.Row:
    """The row of one of a user's engrams. Raises `NotOnRecord`."""
    row = _find(db, engram_id)
    if row is None or row["user_id"] != user_id:
        raise NotOnRecord(f"there is no engram {engram_id}")
    return row


@dataclass(frozen=True, slots=True)
class Deletion:
    """An unfinished deletion: the engram is deleted from the store, and this is kept until every participant was
    notified; `redacted` says whether the journal has redacted its messages.
    """

    engram_id: str
    query_id: str
    respondent_id: str
    user_id: str
    redacted: bool


def is_gone(db: sqlite3.Connection, query_ids: Sequence[str], session_id: str) -> bool:
    """Whether the exchange of any of the ids, or the whole session, was deleted before."""
    marks = ",".join("?" * len(query_ids))
    sql = (
        f"SELECT 1 FROM tombstones WHERE query_id IN ({marks})"
        " UNION ALL SELECT 1 FROM session_tombstones WHERE session_id = ? LIMIT 1"
    )
    return db.execute(sql, (*query_ids, session_id)).fetchone() is not None


def delete(db: sqlite3.Connection, query_id: str, now: float) -> None:
    """Delete all respondents' answers to a query, with dependent rows such as notes. They stay deleted if they arrive
    again.
    """
    rows = db.execute("SELECT * FROM engrams WHERE query_id = ?1 OR note_of = ?1", (query_id,)).fetchall()
    _delete(db, rows, now)


def delete_session(db: sqlite3.Connection, session_id: str, now: float) -> int:
    """Delete everything of a session and everything derived from it; returns how many engrams there were."""
    db.execute("INSERT OR IGNORE INTO session_tombstones VALUES (?, ?)", (session_id, now))
    forget_session(db, session_id)
    rows = db.execute("SELECT * FROM engrams WHERE session_id = ?", (session_id,)).fetchall()
    _delete(db, rows, now)
    return len(rows)


def unfinished(db: sqlite3.Connection) -> list[Deletion]:
    """Return the deletions of which not every participant was notified."""
    rows = db.execute("SELECT * FROM deletions ORDER BY engram_id").fetchall()
    return [
        Deletion(row["engram_id"], row["query_id"], row["respondent_id"], row["user_id"], bool(row["redacted"]))
        for row in rows
    ]


def note_redacted(db: sqlite3.Connection, engram_id: str) -> None:
    """Note that the journal has redacted its messages about it."""
    db.execute("UPDATE deletions SET redacted = 1 WHERE engram_id = ?", (engram_id,))


def finish(db: sqlite3.Connection, engram_id: str) -> None:
    """Note that every participant was notified."""
    db.execute("DELETE FROM deletions WHERE engram_id = ?", (engram_id,))


def _delete(db: sqlite3.Connection, rows: Sequence[sqlite3.Row], now: float) -> None:
    numbers = {row["number"] for row in rows}
    found = [row for row in rows if row["searchable"]]
    after = {each["number"]: each for row in found for each in lexical.exchanges_after(db, row)}
    for row in found:
        lexical.remove_from_index(db, row)
    succession.forget(db, numbers)
    for row in rows:
        db.execute("DELETE FROM engrams WHERE number = ?", (row["number"],))
        db.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (row["query_id"], now))
        told = (row["engram_id"], row["query_id"], row["respondent_id"], row["user_id"])
        db.execute("INSERT INTO deletions (engram_id, query_id, respondent_id, user_id) VALUES (?, ?, ?, ?)", told)
        sql = "UPDATE engrams SET superseded_by = NULL WHERE superseded_by = ? AND note_of IS NOT NULL"
        db.execute(sql, (row["engram_id"],))  # the note that it replaced holds again
    for number, row in after.items():
        if number not in numbers:
            lexical.renew_in_index(db, row)
    if rows:
        lexical.scrub(db)


# Notes that the assistant has made: engrams of their own, each of the query in which it was written down.

SAME_FROM = 0.9  # Jaccard similarity of the words above which a note repeats an older one
_CLASSIFIED = 1  # a note contains no words of a person about themselves
_WORD = re.compile(r"\w+")
_NOTES = "SELECT * FROM engrams INDEXED BY engrams_noted WHERE user_id = ? AND note_of IS NOT NULL"
_HOLDS = "superseded_by IS NULL"


@dataclass(frozen=True, slots=True)
class NoteDraft:
    """A note of the assistant's to be stored. `replaces` is the beginning of the id of the note that it replaces, and
    an empty `text` only withdraws that one. `recalled` and `tainted` are as those of an engram; `written_at` is in
    seconds since 1970.
    """

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


def keep_notes(db: sqlite3.Connection, draft: NoteDraft) -> Ingested:
    """Store a note once, in place of the one that it names and of those with equal content."""
    if is_gone(db, (draft.query_id, draft.call_id), draft.session_id):
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
    sql = f"{_NOTES} AND {_HOLDS} ORDER BY asked_at DESC, number DESC"
    return [stored_engram(row) for row in db.execute(sql, (user_id,)).fetchall()]


def all_notes(db: sqlite3.Connection, user_id: str) -> list[Engram]:
    """The same with those that were replaced or withdrawn."""
    sql = f"{_NOTES} ORDER BY asked_at DESC, number DESC"
    return [stored_engram(row) for row in db.execute(sql, (user_id,)).fetchall()]


def restore(db: sqlite3.Connection, user_id: str, note_id: str) -> None:
    """Have a note hold again that was replaced or withdrawn. Raises `NotOnRecord`."""
    if row_of(db, user_id, note_id)["note_of"] is None:
        raise NotOnRecord(f"the engram {note_id} is an exchange, not a note")
    db.execute("UPDATE engrams SET superseded_by = NULL WHERE engram_id = ?", (note_id,))


def similarity(one: str, other: str) -> float:
    """The Jaccard similarity of two texts' words, 0 to 1."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / len(words | others) if words | others else 1.0


def _withdraw(db: sqlite3.Connection, draft: NoteDraft) -> None:
    """Once: the same call does not withdraw a note again that was restored since."""
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


# The owner's edits of a list of facts and notes: their effects, and applying them.

Kind = Literal["fact", "note"]
What = Literal["added", "changed", "removed", "conflict", "refused", "nothing"]
MOST_CHARS = 2_000  # of one line
TITLE = "Edited by hand:"
ANSWER = "It is in the memory."
_BY_ID = 12  # hexadecimal digits
_DONE: tuple[What, ...] = ("added", "changed", "removed")


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """A current fact or note. `entry_id` names it as long as its text is the same."""

    kind: Kind
    entry_id: str
    text: str
    category: str = ""
    tainted: bool = False
    certain: bool = True


@dataclass(frozen=True, slots=True)
class HandEdit:
    """An edit of one line of MEMORY.md: a new entry without `entry_id`; without `text` the entry is removed. `line` is
    that of the file. A fact holds from and until these days, empty if not given.
    """

    line: int
    kind: Kind
    entry_id: str
    text: str
    holds_from: str = ""
    holds_until: str = ""


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """The effect of an edit of MEMORY.md on the entry `before`. It is a conflict if the memory has changed the entry
    since, too: then it stays as it is.
    """

    line: int
    kind: Kind
    what: What
    before: str = ""
    text: str = ""
    why: str = ""


def entries(db: sqlite3.Connection, user_id: str) -> list[KeptEntry]:
    """The facts that hold, by slot, then the notes, the latest first."""
    stated = [KeptEntry("fact", _id_of(fact), _said(fact), certain=fact.certain) for fact in facts.current(db, user_id)]
    return [*stated, *(_of_note(note) for note in current(db, user_id))]


def compare_edit(db: sqlite3.Connection, user_id: str, edits: Sequence[HandEdit]) -> list[EditOutcome]:
    """Return the effects that edits would have."""
    kept = {(entry.kind, entry.entry_id): entry for entry in entries(db, user_id)}
    texts = {(entry.kind, entry.text) for entry in kept.values()}
    return [_outcome(db, user_id, edit, kept.get((edit.kind, edit.entry_id)), texts) for edit in edits]


def apply(
    db: sqlite3.Connection, user_id: str, edits: Sequence[HandEdit], import_id: str, now: float
) -> list[EditOutcome]:
    """Apply the possible edits as an exchange of their own: deleting it restores the earlier entries."""
    outcomes = compare_edit(db, user_id, edits)
    _do(db, user_id, edits, outcomes, import_id, now)
    return outcomes


def write_fact(
    db: sqlite3.Connection, user_id: str, fact_id: int | None, edit: HandEdit, import_id: str, now: float
) -> EditOutcome:
    """Replace or end a fact that holds or is unconfirmed; without `fact_id` add a new one. The same as an edit of its
    line. Raises `NotOnRecord`, and `ValueError` for a text that is no fact.
    """
    fact = facts.holding(db, user_id, fact_id) if fact_id else None
    if fact and fact.confirmed:
        edit = replace(edit, entry_id=_id_of(fact))
    elif fact:
        facts.drop(db, user_id, fact.fact_id)
    (outcome,) = compare_edit(db, user_id, [edit])
    days = (fact.holds_from, fact.holds_until) if fact else ("", "")
    if outcome.what == "nothing" and (edit.holds_from, edit.holds_until) != days:
        outcome = replace(outcome, what="changed")
    if outcome.what == "refused":
        raise ValueError(outcome.why)
    _do(db, user_id, [edit], [outcome], import_id, now)
    return outcome


def _do(
    db: sqlite3.Connection,
    user_id: str,
    edits: Sequence[HandEdit],
    outcomes: Sequence[EditOutcome],
    import_id: str,
    now: float,
) -> None:
    done = [(edit, outcome) for edit, outcome in zip(edits, outcomes, strict=True) if outcome.what in _DONE]
    if not done:
        return
    told = [f"{outcome.what}: {' → '.join(filter(None, (outcome.before, outcome.text)))}" for _, outcome in done]
    query = "\n".join([TITLE, *told])
    draft = EngramDraft(import_id, import_id, user_id, query, ANSWER, now, Origin.USER, by_user=False)
    ingest(db, draft)
    source = engram(db, user_id, draft.engram_id)
    for edit, outcome in done:
        if edit.kind == "fact":
            _change_fact(db, source, edit, outcome)
        else:
            _change_note(db, source, edit, outcome)


def _outcome(
    db: sqlite3.Connection, user_id: str, edit: HandEdit, entry: KeptEntry | None, texts: set[tuple[Kind, str]]
) -> EditOutcome:
    text = masked(" ".join(edit.text.split()))
    why = "a secret in it is left out" if text != " ".join(edit.text.split()) else ""
    if edit.entry_id and entry is None:
        what: What = "conflict" if text else "nothing"
        return EditOutcome(edit.line, edit.kind, what, text=text, why=_now(db, user_id, edit))
    before = entry.text if entry else ""
    if len(text) > MOST_CHARS:
        return EditOutcome(edit.line, edit.kind, "refused", before, why=f"more than {MOST_CHARS} characters")
    if text and edit.kind == "fact" and not all(_parts(text)):
        return EditOutcome(edit.line, edit.kind, "refused", before, text, "a fact is written as “what: value”")
    if text == before or (not edit.entry_id and (edit.kind, text) in texts):
        return EditOutcome(edit.line, edit.kind, "nothing", before, text)
    what = "removed" if not text else "changed" if before else "added"
    return EditOutcome(edit.line, edit.kind, what, before, text, why)


def _now(db: sqlite3.Connection, user_id: str, edit: HandEdit) -> str:
    """Return the present state of an entry that no longer holds."""
    if edit.kind == "note":
        return _note_now(db, user_id, edit.entry_id)
    was = [fact for fact in facts.history(db, user_id) if _id_of(fact) == edit.entry_id]
    if not was:
        return "it was deleted since"
    holding = facts.current_of_slot(db, user_id, was[-1].slot)
    return f"it is now: {'; '.join(map(_said, holding))}" if holding else "it holds no more"


def _note_now(db: sqlite3.Connection, user_id: str, entry_id: str) -> str:
    sql = f"{_NOTES} AND substr(engram_id, 1, ?) = ?"
    row = db.execute(sql, (user_id, _BY_ID, entry_id)).fetchone()
    if row is None:
        return "it was deleted since"
    later = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (row["superseded_by"],)).fetchone()
    is_note = later is not None and later["note_of"] is not None
    return f"it is now: {_of_note(stored_engram(later)).text}" if is_note else "it holds no more"


def _change_fact(db: sqlite3.Connection, source: Engram, edit: HandEdit, outcome: EditOutcome) -> None:
    (slot, value), (old_slot, old_value) = _parts(outcome.text), _parts(outcome.before)
    others = [fact for fact in facts.current_of_slot(db, source.user_id, slot) if fact.value != old_value]
    if outcome.before and (not value or others or slot_key(slot) != slot_key(old_slot)):
        succession.retract(db, source, old_slot, old_value)
    if value:
        stated = Statement(source.engram_id, slot, value, source.asked_at, Origin.USER)
        statement = replace(stated, holds_from=edit.holds_from, holds_until=edit.holds_until)
        store = succession.add if others else succession.supersede
        store(db, statement)


def _change_note(db: sqlite3.Connection, source: Engram, edit: HandEdit, outcome: EditOutcome) -> None:
    before = next((note for note in current(db, source.user_id) if note.engram_id[:_BY_ID] == edit.entry_id), None)
    draft = NoteDraft(
        call_id=f"{source.query_id}:{edit.line}:{edit.entry_id}",
        query_id=source.query_id,
        session_id=source.session_id,
        user_id=source.user_id,
        text=outcome.text,
        written_at=source.asked_at,
        category=before.query if before else "",
        replaces=before.engram_id if before else "",
        origin=before.origin if before else Origin.USER,
        recalled=before.recalled if before else (),
        tainted=before.tainted if before else False,
    )
    keep_notes(db, draft)


def _of_note(note: Engram) -> KeptEntry:
    text = " ".join(note.answer.split())
    return KeptEntry("note", note.engram_id[:_BY_ID], text, " ".join(note.query.split()), note.tainted)


def _id_of(fact: StatedFact) -> str:
    named = f"{fact.engram_id}\n{slot_key(fact.slot)}\n{fact.value}"
    return hashlib.sha256(named.encode()).hexdigest()[:_BY_ID]


def _said(fact: StatedFact) -> str:
    return " ".join(f"{fact.slot}: {fact.value}".split())


def _parts(text: str) -> tuple[str, str]:
    """Return slot and value of a written fact."""
    slot, _, value = text.partition(": ")
    return slot.strip(), value.strip()
