"""Which turns were tainted, who wrote which answer, and what a session's earlier turns know. In the caller's
transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.services.conversation import ConversationService
from local.services.turn_record import END

_ITS_TURN = "SELECT query_id, respondent_id, session_id FROM turns WHERE query_id = ? AND respondent_id = ?"
_NOT_OWN = (
    "(json_valid(body) AND (coalesce(json_extract(body, '$.tainted'), 0) OR json_extract(body, '$.task') IS NOT NULL))"
)
OWN_ROLES = frozenset({"system", "developer", "user", "assistant"})
MOST_TURNS = 50  # of a session, the latest, whose results are looked at
FEW_TURNS = 3  # the one that asks among them
MOST_WORDS = 1000  # turns of a session, the latest, whose questions are


def text_hash(text: str) -> str:
    """Equal for texts that differ in white space alone, which clients change."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class EarlierRecord:
    """What was asked, and how what was asked ended (as JSON), oldest first; `attachments` are ids, `others` questions
    in which words of strangers may stand. `are_tainted` says that words of strangers were before the model in one of
    them, or in one that nobody knows."""

    queries: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    are_tainted: bool = False


def turns_of_session(db: sqlite3.Connection, session_id: str, respondent_id: str, before: int) -> EarlierRecord:
    """What the turns of a session before that position say of its taint."""
    where = "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND refused IS NULL"
    key = (session_id, respondent_id, before)
    asked = f"SELECT query, {_NOT_OWN} AS others {where} ORDER BY position DESC LIMIT ?"
    queries = db.execute(asked, (*key, MOST_WORDS)).fetchall()
    rows = db.execute(f"SELECT body, outcome {where} ORDER BY position DESC LIMIT ?", (*key, MOST_TURNS)).fetchall()
    return EarlierRecord(
        tuple(row["query"] for row in reversed(queries) if not row["others"]),
        tuple(row["outcome"] for row in reversed(rows) if row["outcome"]),
        _attachments(row["body"] for row in reversed(rows)),
        tuple(row["query"] for row in reversed(queries) if row["others"]),
    )


def few_turns_of_session(
    db: sqlite3.Connection, session_id: str, respondent_id: str, before: int
) -> EarlierRecord | None:
    """As `turns_of_session`, where that is soon read; else None."""
    sql = "SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? LIMIT ?"
    turns = db.execute(sql, (session_id, respondent_id, before, FEW_TURNS + 1)).fetchall()
    return None if len(turns) > FEW_TURNS else turns_of_session(db, session_id, respondent_id, before)


def turns_that_wrote(db: sqlite3.Connection, texts: Sequence[str], respondent_id: str) -> EarlierRecord:
    """The turns that gave these answers to clients that keep the history themselves."""
    writers = [_writers(db, text, respondent_id) for text in texts]
    found = [row for rows in writers[-MOST_TURNS:] for row in rows]
    return EarlierRecord(
        outcomes=tuple(row["outcome"] for row in found if row["outcome"]),
        attachments=_attachments(row["body"] for row in found),
        are_tainted=not all(writers) or any(row["tainted"] for rows in writers for row in rows),
    )


def _writers(db: sqlite3.Connection, text: str, respondent_id: str) -> list[sqlite3.Row]:
    sql = (
        "SELECT body, outcome, EXISTS (SELECT 1 FROM taints WHERE taints.query_id = turns.query_id"
        " AND taints.respondent_id = turns.respondent_id) AS tainted"
        " FROM written JOIN turns USING (query_id, respondent_id) WHERE hash = ? AND respondent_id = ?"
    )
    return db.execute(sql, (text_hash(text), respondent_id)).fetchall()


def _attachments(bodies: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for body in bodies for name in json.loads(body).get("attachments", ())))


def end_of(
    query_id: str, respondent_id: str, *, tainted: bool, written: Sequence[str]
) -> Callable[[sqlite3.Connection], None]:
    """What is to be stored with the end of a turn: whether it was tainted, and the texts as which clients that keep the
    history may have its answer."""
    hashes = {text_hash(text) for text in written if text.strip()}

    def store(db: sqlite3.Connection) -> None:
        key = (query_id, respondent_id)
        if tainted:
            db.execute(f"INSERT OR IGNORE INTO taints {_ITS_TURN}", key)
        db.executemany("INSERT OR IGNORE INTO written VALUES (?, ?, ?)", [(*key, each) for each in hashes])

    return store


class TaintRecord:
    """What the record of one respondent says of taint, kept beside its turns. Raises as `ConversationService` does."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._respondent_id = conversation, respondent_id

    async def earlier(self, history: Sequence[Mapping[str, Any]] | None, session_id: str, before: int) -> EarlierRecord:
        """What came before a query: by the history that a client has sent with it, else by its session."""
        return await (self.turns_of(session_id, before) if history is None else self.turns_of_history(history))

    async def turns_of(self, session_id: str, before: int = END) -> EarlierRecord:
        """What the turns of a session before that position say of its taint; of few turns without a thread."""
        own = self._respondent_id
        if (few := self._conversation.glance(lambda db: few_turns_of_session(db, session_id, own, before))) is not None:
            return few
        return await self._conversation.write(lambda db: turns_of_session(db, session_id, own, before))

    async def turns_of_history(self, history: Sequence[Mapping[str, Any]]) -> EarlierRecord:
        """The turns whose answers a client has among the messages of a conversation that it keeps itself."""
        texts = [text for each in history if each.get("role") == "assistant" and (text := _text(each))]
        return await self._conversation.write(lambda db: turns_that_wrote(db, texts, self._respondent_id))

    async def is_history_tainted(self, history: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a conversation that a client keeps itself holds results of tools, answers that we have not given, or
        one that was tainted."""
        roles = {each.get("role") for each in history if _text(each)}
        if "assistant" not in roles or not roles <= OWN_ROLES:
            return not roles <= OWN_ROLES
        return (await self.turns_of_history(history)).are_tainted


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("content") or "").strip()
