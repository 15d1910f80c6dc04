"""Answers questions about the generator's record: sessions, one session, its turns, one query; and has them changed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from typing import Any

from local.agents.answering.outcomes import stored_outcome
from local.agents.answering.session_changes import SessionChanges
from local.agents.answering.turn_view import fitting_views
from local.errors import LocalError, NotOnRecord
from local.models.chat import Json
from local.protocol.memory_messages import OWNER
from local.protocol.messages import (
    AnswerOptions,
    ContextGauge,
    ConversationRequest,
    ConversationResult,
    ErrorInfo,
    ResponseGeneration,
)
from local.services.conversation import ConversationService, StoredTurn
from local.services.session_listing import SessionFilter
from local.services.session_record import SessionRecord
from local.services.turn_pages import TurnPlace

LATEST = 50  # turns that are told of a whole session


class ConversationRequestHandler:
    """Reads a `ConversationService` in the words of the protocol, and has sessions named, branched and deleted."""

    def __init__(
        self,
        conversation: ConversationService,
        sessions: SessionRecord,
        changes: SessionChanges,
        prelude: Callable[[Sequence[Json], date, str | None], Sequence[Json]],
        delete: Callable[[str], Awaitable[tuple[int, int]]],
        prompt: Callable[[date, str | None, AnswerOptions | None], Json],
    ) -> None:
        """`prelude(history, today, user_id)` is what the model gets before a question; `delete(session_id)` gives the
        numbers of turns and of messages on record that it has emptied; `prompt(today, user_id, options)` is the system
        prompt, section by section."""
        self._conversation, self._sessions, self._changes = conversation, sessions, changes
        self._prelude, self._delete_session, self._prompt = prelude, delete, prompt
        self._work: dict[str, Callable[[ConversationRequest], Awaitable[Json]]] = {
            "sessions": self._listing,
            "session": self._session,
            "turns": self._turns,
            "find": self._find,
            "change": self._change,
            "branch": self._branch,
            "delete": self._delete,
            "query": self._query,
            "prompt": self._prompt_sections,
        }

    async def answer(self, request: ConversationRequest) -> ConversationResult:
        """The record asked for, or an error that says why there is none."""
        try:
            if request.of_user is not None and request.verb != "prompt":
                await self._require(request.key, request.of_user)
            return ConversationResult(verb=request.verb, value=await self._work[request.verb](request))
        except LocalError as error:
            return ConversationResult(verb=request.verb, error=ErrorInfo.of(error))

    async def _require(self, session_id: str, user_id: str) -> None:
        if ((await self._sessions.head(session_id)).user_id or OWNER) != user_id:
            raise NotOnRecord(f"there is no session {session_id}")

    async def _listing(self, request: ConversationRequest) -> Json:
        wanted = SessionFilter(request.key, OWNER, request.among, request.query)
        sessions, cursor = await self._sessions.listing(wanted, request.cursor, request.limit)
        return {"sessions": sessions, "cursor": cursor}

    async def _session(self, request: ConversationRequest) -> Json:
        page = await self._sessions.page(request.key, TurnPlace(), LATEST)
        turns, head = page.turns[::-1], page.head
        history = await self._conversation.history(head.session_id)
        gauge = next(filter(None, map(_gauge, reversed(turns))), None)
        line = await self._line(head.session_id)
        return {
            "session_id": head.session_id,
            "user_id": head.user_id,
            "incognito": head.incognito,
            **{name: line.get(name) for name in ("title", "pinned", "branched_from", "model")},
            "branches": await self._sessions.family(head.session_id),
            "messages": self._prelude(history, date.today(), head.user_id),
            "turns": [_summary(turn) for turn in turns],
            "total": head.total,
            "context": gauge and gauge.model_dump(),
        }

    async def _line(self, session_id: str) -> Json:
        """A session as it is listed; nothing of one whose history a client keeps."""
        sessions, _ = await self._sessions.listing(SessionFilter(among=[session_id]))
        return sessions[0] if sessions else {}

    async def _turns(self, request: ConversationRequest) -> Json:
        place = TurnPlace(request.order, request.at, request.position)
        page = await self._sessions.page(request.key, place, request.limit)
        turns = fitting_views(page.turns, page.contexts)
        more = page.has_more or len(turns) < len(page.turns)
        head = page.head
        return {
            "session_id": head.session_id, "user_id": head.user_id, "incognito": head.incognito, "total": head.total,
            "turns": turns, "more": more,
        }  # fmt: skip

    async def _find(self, request: ConversationRequest) -> Json:
        head = await self._sessions.head(request.key)
        hits = await self._sessions.find(request.key, request.query)
        return {"session_id": head.session_id, "user_id": head.user_id, "hits": [hit._asdict() for hit in hits]}

    async def _change(self, request: ConversationRequest) -> Json:
        await self._changes.change(request.key, request.labels)
        return await self._line(request.key)

    async def _branch(self, request: ConversationRequest) -> Json:
        point = await self._changes.branch(request.key, request.before, request.branch_id)
        origin = {"session_id": point.session_id, "query_id": point.before}
        return {"session_id": request.branch_id, "branched_from": origin, "incognito": point.incognito}

    async def _delete(self, request: ConversationRequest) -> Json:
        copied_to = await self._sessions.copied_to(request.key)
        turns, messages = await self._delete_session(request.key)
        deleted = {"session_id": request.key, "deleted_turns": turns, "redacted_messages": messages}
        return {**deleted, "copied_to": copied_to}

    async def _query(self, request: ConversationRequest) -> Json:
        turn = await self._conversation.turn(request.key)
        if turn is None:
            raise NotOnRecord(f"there is no query {request.key}")
        outcome = None if turn.outcome is None else json.loads(turn.outcome)
        return {**_summary(turn), "outcome_subject": turn.outcome_subject, "outcome": outcome}

    async def _prompt_sections(self, request: ConversationRequest) -> Json:
        return self._prompt(date.today(), request.of_user, request.options)


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
