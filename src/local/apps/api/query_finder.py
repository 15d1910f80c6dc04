"""Finds queries for those who ask after them: as they are known here, or else as they are on record."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from local.apps.api.participant_table import ParticipantTable
from local.apps.api.principals import Principal
from local.apps.api.query_stream import Trail
from local.apps.participant_client import ParticipantAway, ParticipantRefused
from local.apps.permissions import Permissions
from local.apps.session import LoCALSession
from local.protocol.envelope import Envelope
from local.queries.errors import QueryDeleted
from local.queries.live_query import LiveQuery
from local.queries.query_events import CRITIQUE, PAIRWISE
from local.queries.query_view import QueryView

CRITIC, SECOND_RESPONDENT = "critic", "generator_b"


class QueryFinder:
    """`trail_seconds` is for how long after an answer its judgements are waited for; `clock` gives seconds."""

    def __init__(
        self,
        session: LoCALSession,
        permissions: Permissions,
        participants: ParticipantTable,
        trail_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._session, self._permissions = session, permissions
        self._participants, self._clock = participants, clock
        self.trail = Trail(trail_seconds, self._awaited)

    async def find(self, query_id: str, caller: Principal) -> tuple[LiveQuery | None, QueryView]:
        """A query as it is known here, or else as it is on record, without a `LiveQuery`. Raises as `Asker.recall`, and
        `RequestRefused` (not_found) for one of somebody else's."""
        live = self._session.live(query_id)
        try:
            is_known = live is not None and live.view.failure is None
            live, view = (live, live.view) if live and is_known else (None, await self._session.recall(query_id))
        except QueryDeleted as error:
            caller.require(error.user_id, f"query {query_id}")
            raise
        caller.require(view.user_id, f"query {query_id}")
        return live, view

    async def follow(self, query_id: str, caller: Principal) -> LiveQuery:
        """A query that is on record, to be followed until it ends. Raises as `find` does."""
        query, view = await self.find(query_id, caller)
        if query is not None:
            return query
        query = self._session.ask(
            view.query or "",
            query_id=query_id,
            session_id=view.session_id,
            user_id=view.user_id,
            is_on_record=True,
        )
        await query.accepted()
        await self._session.recall_judgements(query)
        if not query.view.ended:
            await self._recall_approvals(query)
        return query

    async def _recall_approvals(self, query: LiveQuery) -> None:
        """Tell what waits for its user, which was said before anybody listened here; nothing while nobody knows."""
        with suppress(ParticipantAway, ParticipantRefused):
            for asked in (await self._permissions.ask("list", query.view.user_id)).waiting:
                if query.query_id in (asked.query_id, asked.root_query_id):
                    query.receive(asked, Envelope(asked.subject, "", "", "", 1, asked.query_id, b""))

    def _awaited(self) -> frozenset[str]:
        """What will be said of an answer, by those who are there now to say it."""
        table, now = self._participants, self._clock()
        if not table.is_expected(CRITIC, now):
            return frozenset()
        judges = table.details(CRITIC, now).get("judges", f"{CRITIQUE}, {PAIRWISE}")
        possible = (CRITIQUE, PAIRWISE) if table.is_expected(SECOND_RESPONDENT, now) else (CRITIQUE,)
        return frozenset(kind for kind in possible if kind in judges)
