"""What an owner has changed by hand in a list of facts and notes: what it would do, and doing it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from local.services.engrams import facts, notes, record, succession
from local.services.engrams.engram import Engram, EngramDraft, Origin, StatedFact, Statement, slot_key
from local.services.engrams.masking import masked
from local.services.engrams.notes import NoteDraft
from local.services.engrams.store import stored_engram

Kind = Literal["fact", "note"]
What = Literal["added", "changed", "removed", "conflict", "refused", "nothing"]
MOST_CHARS = 2_000  # of one line
TITLE = "MEMORY.md, edited by hand:"
ANSWER = "It is in the memory."
_BY_ID = 12  # hexadecimal digits
_DONE: tuple[What, ...] = ("added", "changed", "removed")


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """A fact or a note that holds. `entry_id` names it for as long as it says the same."""

    kind: Kind
    entry_id: str
    text: str
    category: str = ""
    tainted: bool = False
    certain: bool = True


@dataclass(frozen=True, slots=True)
class HandEdit:
    """What becomes of an entry, a new one without `entry_id`; without `text` it is removed. `line` is that of the
    file."""

    line: int
    kind: Kind
    entry_id: str
    text: str


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """What an edit does to what was there `before`. It is a conflict where the memory has changed since, too: that
    stays as it is."""

    line: int
    kind: Kind
    what: What
    before: str = ""
    text: str = ""
    why: str = ""


def entries(db: sqlite3.Connection, user_id: str) -> list[KeptEntry]:
    """The facts that hold, by slot, then the notes, the latest first."""
    stated = [KeptEntry("fact", _id_of(fact), _said(fact), certain=fact.certain) for fact in facts.current(db, user_id)]
    return [*stated, *(_of_note(note) for note in notes.current(db, user_id))]


def compare(db: sqlite3.Connection, user_id: str, edits: Sequence[HandEdit]) -> list[EditOutcome]:
    """What edits would do."""
    kept = {(entry.kind, entry.entry_id): entry for entry in entries(db, user_id)}
    texts = {(entry.kind, entry.text) for entry in kept.values()}
    return [_outcome(db, user_id, edit, kept.get((edit.kind, edit.entry_id)), texts) for edit in edits]


def apply(
    db: sqlite3.Connection, user_id: str, edits: Sequence[HandEdit], import_id: str, now: float
) -> list[EditOutcome]:
    """Do what can be done, as an exchange of its own: deleting that brings back what was there before it."""
    outcomes = compare(db, user_id, edits)
    done = [(edit, outcome) for edit, outcome in zip(edits, outcomes, strict=True) if outcome.what in _DONE]
    if not done:
        return outcomes
    told = [f"{outcome.what}: {' → '.join(filter(None, (outcome.before, outcome.text)))}" for _, outcome in done]
    query = "\n".join([TITLE, *told])
    draft = EngramDraft(import_id, import_id, user_id, query, ANSWER, now, Origin.USER, by_user=False)
    record.ingest(db, draft)
    source = record.engram(db, user_id, draft.engram_id)
    for edit, outcome in done:
        if edit.kind == "fact":
            _change_fact(db, source, outcome)
        else:
            _change_note(db, source, edit, outcome)
    return outcomes


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
    """What is so now of an entry that holds no more."""
    if edit.kind == "note":
        return _note_now(db, user_id, edit.entry_id)
    was = [fact for fact in facts.history(db, user_id) if _id_of(fact) == edit.entry_id]
    if not was:
        return "it was deleted since"
    holding = facts.current_of_slot(db, user_id, was[-1].slot)
    return f"it is now: {'; '.join(map(_said, holding))}" if holding else "it holds no more"


def _note_now(db: sqlite3.Connection, user_id: str, entry_id: str) -> str:
    sql = "SELECT * FROM engrams WHERE user_id = ? AND substr(engram_id, 1, ?) = ? AND note_of IS NOT NULL"
    row = db.execute(sql, (user_id, _BY_ID, entry_id)).fetchone()
    if row is None:
        return "it was deleted since"
    later = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (row["superseded_by"],)).fetchone()
    is_note = later is not None and later["note_of"] is not None
    return f"it is now: {_of_note(stored_engram(later)).text}" if is_note else "it holds no more"


def _change_fact(db: sqlite3.Connection, source: Engram, outcome: EditOutcome) -> None:
    (slot, value), (old_slot, old_value) = _parts(outcome.text), _parts(outcome.before)
    others = [fact for fact in facts.current_of_slot(db, source.user_id, slot) if fact.value != old_value]
    if outcome.before and (not value or others or slot_key(slot) != slot_key(old_slot)):
        succession.retract(db, source, old_slot, old_value)
    if value:
        statement = Statement(source.engram_id, slot, value, source.asked_at, Origin.USER)
        store = succession.add if others else succession.supersede
        store(db, statement)


def _change_note(db: sqlite3.Connection, source: Engram, edit: HandEdit, outcome: EditOutcome) -> None:
    before = next(
        (note for note in notes.current(db, source.user_id) if note.engram_id[:_BY_ID] == edit.entry_id), None
    )
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
    notes.keep(db, draft)


def _of_note(note: Engram) -> KeptEntry:
    text = " ".join(note.answer.split())
    return KeptEntry("note", note.engram_id[:_BY_ID], text, " ".join(note.query.split()), note.tainted)


def _id_of(fact: StatedFact) -> str:
    named = f"{fact.engram_id}\n{slot_key(fact.slot)}\n{fact.value}"
    return hashlib.sha256(named.encode()).hexdigest()[:_BY_ID]


def _said(fact: StatedFact) -> str:
    return " ".join(f"{fact.slot}: {fact.value}".split())


def _parts(text: str) -> tuple[str, str]:
    """Slot and value of a fact as it is written."""
    slot, _, value = text.partition(": ")
    return slot.strip(), value.strip()
