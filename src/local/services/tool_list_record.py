"""The list of tools that the model of a session is offered, as the session's first turn was given it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from local.services.conversation import ConversationService

_KEEP = (
    "INSERT INTO tool_lists SELECT session_id, respondent_id, :kind, :body FROM turns WHERE query_id = :query"
    " AND respondent_id = :own AND refused IS NULL ON CONFLICT DO UPDATE SET body = excluded.body"
)


class ToolListRecord:
    """Reads in one respondent's record. A session has one list of each kind."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    def of(self, session_id: str, kind: str) -> str | None:
        """The list of that kind; None if the session has none, as one that is older than these lists."""
        sql = "SELECT body FROM tool_lists WHERE session_id = ? AND respondent_id = ? AND kind = ?"
        key = (session_id, self._own, kind)
        row = self._conversation.glance(lambda db: db.execute(sql, key).fetchone())
        return None if row is None else str(row[0])


def list_kept(query_id: str, respondent_id: str, kind: str, body: str) -> Callable[[sqlite3.Connection], object]:
    """What stores a list for the session of a query, with the end of its turn."""
    values = {"query": query_id, "own": respondent_id, "kind": kind, "body": body}
    return lambda db: db.execute(_KEEP, values)
