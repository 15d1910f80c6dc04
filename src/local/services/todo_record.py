"""The list of what is to be done that a session's turns have left, as it stands in the record of their calls."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from local.services.conversation import ConversationService

_LATEST = (
    "SELECT made.value FROM turns, json_each(turns.outcome, '$.tool_calls') AS made"
    ' WHERE session_id = ? AND respondent_id = ? AND in_history AND instr(outcome, \'"tool":"todo"\') > 0'
    " AND json_extract(made.value, '$.tool') = 'todo' AND json_extract(made.value, '$.result') IS NOT NULL"
    " ORDER BY position DESC, made.key DESC LIMIT 1"
)


class TodoRecord:
    """Reads in one respondent's record; what is deleted there is gone here."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    async def latest(self, session_id: str) -> list[dict[str, Any]]:
        """The call that has set a session's list last, as it is in the record of its turn; none if nothing has."""

        def work(db: sqlite3.Connection) -> list[dict[str, Any]]:
            return [json.loads(row[0]) for row in db.execute(_LATEST, (session_id, self._own))]

        return await self._conversation.read(work)
