"""The list of what is to be done that a session's turns have left, as it stands in the record of their calls."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from local.services.conversation import ConversationService

_WITH_LIST = 'session_id = ? AND respondent_id = ? AND in_history AND instr(outcome, \'"tool":"todo"\') > 0'
_HAS_LIST = f"SELECT 1 FROM turns WHERE {_WITH_LIST} LIMIT 1"
_LATEST = (
    "SELECT made.value FROM turns, json_each(turns.outcome, '$.tool_calls') AS made"
    f" WHERE {_WITH_LIST}"
    " AND json_extract(made.value, '$.tool') = 'todo' AND json_extract(made.value, '$.result') IS NOT NULL"
    " ORDER BY position DESC, made.key DESC LIMIT 1"
)


class TodoRecord:
    """Reads in one respondent's record; what is deleted there is gone here."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    async def latest(self, session_id: str) -> list[dict[str, Any]]:
        """The call that has set a session's list last, as it is in the record of its turn; none if nothing has."""
        key = (session_id, self._own)
        if self._conversation.glance(lambda db: db.execute(_HAS_LIST, key).fetchone()) is None:
            return []  # as most sessions: a thread and a connection of its own would hold up each of their turns

        def work(db: sqlite3.Connection) -> list[dict[str, Any]]:
            return [json.loads(row[0]) for row in db.execute(_LATEST, key)]

        return await self._conversation.read(work)
