"""What one respondent's record says of whole sessions: listed, searched, paged, named and branched."""

from __future__ import annotations

import sqlite3
from typing import Any

from local.services import session_branch, session_labels, text_search
from local.services.conversation import ConversationService
from local.services.session_branch import BranchPoint, NewBranch
from local.services.session_labels import Labels
from local.services.session_listing import SessionFilter, sessions_of
from local.services.text_search import TextHit, find_in_session
from local.services.turn_pages import SessionHead, TurnPage, TurnPlace, head_of, page_of


class SessionRecord:
    """Kept beside the turns. What only reads does so in a thread of its own and holds up no turn. Raises as
    `ConversationService` does, and `NotOnRecord` for a session that there is not."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    async def listing(
        self, wanted: SessionFilter, cursor: str = "", limit: int = 1000
    ) -> tuple[list[dict[str, Any]], str | None]:
        """A page of sessions, and the cursor of the next one. Raises `BadCursor`."""

        def work(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], str | None]:
            text_search.prepare(db)
            return sessions_of(db, self._own, wanted, cursor, limit)

        return await self._conversation.read(work)

    async def head(self, session_id: str) -> SessionHead:
        """Whose a session is, and how many turns it has."""
        return await self._conversation.read(lambda db: head_of(db, self._own, session_id))

    async def page(self, session_id: str, place: TurnPlace, limit: int) -> TurnPage:
        """At most `limit` turns of a session before or after a place."""
        return await self._conversation.read(lambda db: page_of(db, self._own, session_id, place, limit))

    async def find(self, session_id: str, text: str) -> list[TextHit]:
        """Where a text stands in a session."""

        def work(db: sqlite3.Connection) -> list[TextHit]:
            text_search.prepare(db)
            return find_in_session(db, self._own, session_id, text)

        return await self._conversation.read(work)

    async def labels(self, session_id: str) -> Labels:
        """How a session is called, and whether it is pinned."""
        return await self._conversation.read(lambda db: session_labels.labels_of(db, self._own, session_id))

    async def keep_labels(self, session_id: str, labels: Labels) -> None:
        """Store them, unless there are later ones, or no session."""
        await self._conversation.write(lambda db: session_labels.keep_labels(db, self._own, session_id, labels))

    async def branch_point(self, session_id: str, before: str) -> BranchPoint:
        """Where a branch begins that goes on before a query. Raises `TurnStillOpen`."""
        return await self._conversation.read(lambda db: session_branch.branch_point(db, self._own, session_id, before))

    async def require_new(self, session_id: str, point: BranchPoint) -> bool:
        """Whether a branch is still to be made. Raises `SessionExists` where there is another session of that id."""
        own = self._own
        return await self._conversation.read(lambda db: session_branch.require_new(db, own, session_id, point))

    async def branch(self, new: NewBranch) -> None:
        """Have a new session begin with the ended turns of another one that come before a query; once."""
        await self._conversation.write(lambda db: session_branch.branch(db, self._own, new))

    async def family(self, session_id: str) -> list[dict[str, Any]]:
        """The branches of a session, of the one that it has branched off, and so on."""
        return await self._conversation.read(lambda db: session_branch.family_of(db, self._own, session_id))

    async def copied_to(self, session_id: str) -> list[str]:
        """The other sessions that hold copies of its turns."""
        return await self._conversation.read(lambda db: session_branch.copied_to(db, self._own, session_id))
