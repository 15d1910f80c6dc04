"""Conversations for people: ask, follow, cancel, look up, rate, delete."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from pydantic_core import from_json

from local.bus.envelope import Trace
from local.bus.message import MAIN_RESPONDENT
from local.bus.messages import ConversationRequest, QueryFailed, ResponseGeneration
from local.core.errors import MalformedFrame, RecordUnreadable, RequestTimeout
from local.critic.messages import UserFeedback
from local.journal.client import entries_on_record
from local.journal.messages import JournalRead
from local.queries.asker import Asker
from local.queries.errors import AnswerNotOnRecord, QueryRefused
from local.queries.record import (
    RecordedMessage,
    judgements_of,
    look_up,
    read_judgements,
    read_query,
    read_recorded,
    trace_of,
)
from local.queries.view import Judgements, QueryTrace, QueryView

DELETE_SECONDS = 15.0  # longer than the generator waits for the journal, so that its error arrives


class LoCALSession(Asker):
    """An asker for people: it also shows them their conversations, deletes these, and accepts ratings."""

    publishes = (Asker, ConversationRequest, UserFeedback)

    async def look_up(self, verb: str, key: str = "", seconds: float = 5.0, **fields: Any) -> dict[str, Any]:
        """Ask for the generator's record; `fields` are more of a `ConversationRequest`. Raises `RequestTimeout`,
        and `QueryRefused` with the generator's reason."""
        return await look_up(self._bus, verb, key, seconds, **fields)

    async def scores(self, query_ids: Sequence[str], seconds: float = 1.0) -> dict[str, Any]:
        """Return the scores of the answers to at most 100 queries, by query_id; empty while the journal does not
        answer.
        """
        try:
            found = await judgements_of(self._bus, query_ids, seconds)
        except (RequestTimeout, RecordUnreadable):
            found = {query_id: Judgements() for query_id in query_ids}
        return {query_id: judgements.as_json() for query_id, judgements in found.items()}

    async def recorded(self, query_id: str) -> tuple[list[RecordedMessage], QueryTrace]:
        """Return all recorded messages of a query, and how its time was spent. Raises as `entries`."""
        found = await read_recorded(self._bus, query_id, self._timeouts.last_look)
        return found, await trace_of(self._bus, query_id, found)

    async def entries(self, request: JournalRead) -> AsyncIterator[RecordedMessage]:
        """Yield the recorded messages that match a request. Raises `RequestTimeout`, `RecordUnreadable`."""
        async for entry in entries_on_record(self._bus, request, self._timeouts.last_look):
            yield RecordedMessage.of(entry)

    async def payload(self, message: RecordedMessage) -> Any:
        """The whole payload of a message on record, with its large fields if they are there; None where it was
        removed."""
        if message.entry.redacted:
            return None
        try:
            return from_json(await self._bus.unpack(message.envelope))
        except MalformedFrame:
            return from_json(message.envelope.payload)

    async def respondents(self, query_id: str) -> list[QueryView]:
        """Return each respondent's view of a query, the main one first. Raises `RequestTimeout`, `RecordUnreadable`."""
        seconds = self._timeouts.last_look
        told = [*await read_query(self._bus, query_id, seconds), *await read_judgements(self._bus, query_id, seconds)]
        outcomes = [message for message, _ in told if isinstance(message, ResponseGeneration | QueryFailed)]
        names = sorted({MAIN_RESPONDENT, *(outcome.respondent_id for outcome in outcomes)})
        views = [QueryView(query_id, respondent_id=name) for name in names]
        for view in views:
            for message, envelope in told:
                view.receive(message, envelope)
        return views

    async def delete(self, session_id: str, of_user: str | None = None) -> dict[str, Any]:
        """Delete a session permanently; with `of_user` only if it is that user's. Raises as `look_up` does; repeat the
        call then, because the deletion may be incomplete.
        """
        deleted = await self.look_up("delete", session_id, DELETE_SECONDS, of_user=of_user)
        self.forget_session(session_id)
        return deleted

    async def rate(
        self, query_id: str, rating: Literal[-1, 1] | None, comment: str = "", respondent_id: str = MAIN_RESPONDENT
    ) -> None:
        """Record a user's rating of an answer, or with None its withdrawal.

        Raises `QueryRefused` (not_found; conflict if there is no such answer), `AnswerNotOnRecord`, and as `read_query`
        and `Bus.publish`.
        """
        trace = await self._trace_of_answer(query_id, respondent_id)
        feedback = UserFeedback(
            query_id=query_id, respondent_id=respondent_id, rating=rating, comment=comment, rated_at=time.time()
        )
        await self._bus.publish(feedback, trace)

    async def _trace_of_answer(self, query_id: str, respondent_id: str) -> Trace:
        """Return the trace for messages that follow from an answer; one given here may not be recorded yet."""
        live, seconds = self.live(query_id), self._timeouts.last_look
        if live is not None and respondent_id == MAIN_RESPONDENT and respondent_id in live.view.answers:
            return live.view.answers[respondent_id]
        told = await read_query(self._bus, query_id, seconds)
        if not told:
            raise QueryRefused("not_found", f"there is no query {query_id}")
        view = QueryView.of(query_id, told)
        if respondent_id in view.answers:
            return view.answers[respondent_id]
        if respondent_id == MAIN_RESPONDENT and not view.ended and await self._is_answered(query_id):
            raise AnswerNotOnRecord(query_id)
        raise QueryRefused("conflict", f"query {query_id} has no answer of {respondent_id} that could be rated")

    async def _is_answered(self, query_id: str) -> bool:
        """Whether the generator has stored the answer, which it does before publishing it."""
        try:
            record = await self.look_up("query", query_id, self._timeouts.last_look)
        except QueryRefused:
            return False
        return bool(record.get("status") == "answered")
