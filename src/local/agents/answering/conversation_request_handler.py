"""Answers questions about the generator's record: sessions, one session, one query."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from typing import Any

from local.agents.answering.outcomes import stored_outcome
from local.errors import LocalError, NotOnRecord
from local.models.chat import Json
from local.protocol.memory_messages import OWNER
from local.protocol.messages import ContextGauge, ConversationRequest, ConversationResult, ErrorInfo, ResponseGeneration
from local.services.conversation import ConversationService, StoredTurn


class ConversationRequestHandler:
    """Reads a `ConversationService` in the words of the protocol, and has sessions deleted."""

    def __init__(
        self,
        conversation: ConversationService,
        prelude: Callable[[Sequence[Json], date, str | None], Sequence[Json]],
        delete: Callable[[str], Awaitable[tuple[int, int]]],
    ) -> None:
        """`prelude(history, today, user_id)` is what the model gets before a question; `delete(session_id)` gives the
        numbers of turns and of messages on record that it has emptied."""
        self._conversation, self._prelude, self._delete_session = conversation, prelude, delete

    async def answer(self, request: ConversationRequest) -> ConversationResult:
        """The record asked for, or an error that says why there is none."""
        work = {
            "sessions": self._sessions,
            "session": self._session,
            "delete": self._delete,
            "query": self._query,
        }[request.verb]
        try:
            return ConversationResult(verb=request.verb, value=await work(request.key))
        except LocalError as error:
            return ConversationResult(verb=request.verb, error=ErrorInfo(kind=error.kind, message=str(error)))

    async def _sessions(self, user_id: str) -> dict[str, Any]:
        return {"sessions": await self._conversation.sessions(user_id, unnamed=OWNER)}

    async def _session(self, session_id: str) -> dict[str, Any]:
        turns = [turn for turn in await self._conversation.session(session_id) if turn.refused is None]
        if not turns:
            raise NotOnRecord(f"there is no session {session_id}")
        history = await self._conversation.history(session_id)
        gauge = next(filter(None, map(_gauge, reversed(turns))), None)
        return {
            "session_id": session_id,
            "user_id": turns[0].user_id,
            "incognito": turns[0].incognito,
            "messages": self._prelude(history, date.today(), turns[-1].user_id),
            "turns": [_summary(turn) for turn in turns],
            "context": gauge and gauge.model_dump(),
        }

    async def _delete(self, session_id: str) -> dict[str, Any]:
        turns, messages = await self._delete_session(session_id)
        return {"session_id": session_id, "deleted_turns": turns, "redacted_messages": messages}

    async def _query(self, query_id: str) -> dict[str, Any]:
        turn = await self._conversation.turn(query_id)
        if turn is None:
            raise NotOnRecord(f"there is no query {query_id}")
        outcome = None if turn.outcome is None else json.loads(turn.outcome)
        return {**_summary(turn), "outcome_subject": turn.outcome_subject, "outcome": outcome}


def _gauge(turn: StoredTurn) -> ContextGauge | None:
    """How full the window was at the turn's last prompt."""
    outcome = stored_outcome(turn)
    return outcome.usage.context if isinstance(outcome, ResponseGeneration) else None


def _summary(turn: StoredTurn) -> dict[str, Any]:
    return {
        "query_id": turn.query_id,
        "session_id": turn.session_id,
        "user_id": turn.user_id,
        "query": turn.query,
        "status": turn.status,
        "answer": turn.answer,
        "attempt": turn.attempt,
        "created_at": turn.created_at,
        "finished_at": turn.finished_at,
    }
