"""Conversations that users bring along from other programs, as one respondent's record keeps them.

Nobody here has seen what their turns are made from, so all of it is untrusted: the session is tainted, and its
questions are not the user's own words. In the caller's transaction.
"""

from __future__ import annotations

import sqlite3
import uuid

from local.bus.messages import ImportedExchange, QueryReceived, ResponseGeneration, SessionImported
from local.generator.history import TurnStatus
from local.generator.titles import clean_title, keep_title

_NAMESPACE = uuid.UUID("0f0b1a34-4a53-4d43-9a4e-9d4d6f1f2c61")
TITLE_CHARACTERS = 80


def imported_session_id(user_id: str | None, source: str, origin_id: str) -> str:
    """The id of an imported conversation: always the same for one user, so that importing it twice is importing it
    once."""
    return uuid.uuid5(_NAMESPACE, f"{user_id or ''}\n{source}\n{origin_id}").hex


def put_imported(db: sqlite3.Connection, respondent_id: str, imported: SessionImported, user_id: str | None) -> None:
    """Store an imported conversation; nothing if it is there."""
    session_id = imported.session_id
    row = (session_id, respondent_id, imported.source, imported.origin_id, imported.imported_at)
    if not db.execute("INSERT OR IGNORE INTO imports VALUES (?, ?, ?, ?, ?)", row).rowcount:
        return
    latest = "SELECT tools FROM turns WHERE respondent_id = ? ORDER BY position DESC LIMIT 1"
    tools = (db.execute(latest, (respondent_id,)).fetchone() or ("[]",))[0]  # a restarted process waits for these
    at = next((one.asked_at for one in imported.exchanges if one.asked_at), imported.imported_at)
    for number, exchange in enumerate(imported.exchanges):
        query_id = uuid.uuid5(_NAMESPACE, f"{session_id}\n{number}").hex
        asked = exchange.asked_at or at
        at = exchange.answered_at or asked
        outcome = _outcome(query_id, respondent_id, session_id, exchange)
        db.execute(
            "INSERT OR IGNORE INTO turns (query_id, respondent_id, session_id, user_id, envelope_id, query, body,"
            " in_history, status, tools, answer, outcome_subject, outcome, published, created_at, finished_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, 1, ?, ?)",
            (query_id, respondent_id, session_id, user_id, query_id, exchange.query, _body(query_id, exchange),
             TurnStatus(outcome.status), tools, exchange.answer, outcome.subject, outcome.encode().decode(), asked, at),
        )  # fmt: skip
        db.execute("INSERT OR IGNORE INTO taints VALUES (?, ?, ?)", (query_id, respondent_id, session_id))
        if number == 0:
            title = clean_title(imported.title, TITLE_CHARACTERS) or clean_title(exchange.query, TITLE_CHARACTERS)
            keep_title(db, respondent_id, query_id, session_id, title or f"From {imported.source}")


def _body(query_id: str, exchange: ImportedExchange) -> str:
    return QueryReceived(query_id=query_id, query=exchange.query, tainted=True).encode().decode()


def _outcome(query_id: str, respondent_id: str, session_id: str, exchange: ImportedExchange) -> ResponseGeneration:
    return ResponseGeneration(
        query_id=query_id, respondent_id=respondent_id, status="answered" if exchange.answer else "cancelled",
        query=exchange.query, answer=exchange.answer, model=exchange.model, session_id=session_id,
        tainted=True, own_words=False,
    )  # fmt: skip
