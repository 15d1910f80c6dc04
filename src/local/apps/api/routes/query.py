"""Queries: ask, follow, look at, stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.answers import answer_of, cancelled_unbegun, recorded, state_of
from local.apps.api.context import ApiContext
from local.apps.api.errors import Refusal
from local.apps.api.following import Trail
from local.apps.api.ids import Id, PathId
from local.apps.api.json_body import Json, read_body, takes
from local.apps.api.query_stream import StreamSettings, number_after, query_chunks
from local.apps.api.sse import EventStream
from local.apps.exchange import Exchange, QueryRefused
from local.apps.judgements import CRITIQUE, PAIRWISE
from local.errors import AttachmentMissing

EVENTS = "text/event-stream"
CRITIC, SECOND_RESPONDENT = "critic", "generator_b"
MAX_ATTACHMENTS = 16

FileId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; expected a question")
    return text


class Ask(BaseModel):
    """The body of POST /query. Without a session_id the query is a session of its own."""

    model_config = ConfigDict(extra="forbid", strict=True)
    query: Annotated[str, AfterValidator(_not_blank)]
    attachments: Annotated[tuple[FileId, ...], Field(max_length=MAX_ATTACHMENTS, strict=False)] = ()
    query_id: Id | None = None
    session_id: Id | None = None
    user_id: Id | None = None
    incognito: bool = False
    wait: bool = True


def router(context: ApiContext) -> APIRouter:
    """The routes under /query."""
    routes = APIRouter()
    queries = _Queries(context)
    routes.add_api_route("/query", queries.ask, methods=["POST"], openapi_extra=takes(Ask))
    routes.add_api_route("/query/{query_id}", queries.look_up, methods=["GET"])
    routes.add_api_route("/query/{query_id}/events", queries.follow, methods=["GET"])
    routes.add_api_route("/query/{query_id}/cancel", queries.cancel, methods=["POST"])
    return routes


class _Queries:
    def __init__(self, context: ApiContext) -> None:
        self._context, self._session = context, context.session

    async def ask(self, request: Request) -> Response:
        """Ask. The whole answer; or with `Accept: text/event-stream` events; or with `"wait": false` the ids at once.

        The same query_id again is the same query: it joins the turn, or gets the answer there is. A query that was
        cancelled, even before its turn came, is answered with 200 and status "cancelled"; a failed turn with 502 and
        what there is of its answer.
        """
        asked = await read_body(request, Ask)
        await self._check_attachments(asked.attachments)
        exchange = self._session.ask(
            asked.query,
            attachments=asked.attachments,
            query_id=asked.query_id,
            session_id=asked.session_id,
            user_id=asked.user_id,
            incognito=asked.incognito,
        )
        if not asked.wait:
            await exchange.accepted()
            return Json({"query_id": exchange.query_id, "session_id": exchange.session_id}, 202)
        if EVENTS in request.headers.get("accept", ""):
            await exchange.accepted()
            return self._stream(exchange, request.headers.get("last-event-id"))
        return await _whole(exchange)

    async def look_up(self, query_id: PathId) -> Response:
        """A query's answer with its scores, or what was said so far."""
        exchange = self._session.exchange(query_id)
        if exchange is not None and exchange.response is not None:
            await self._session.judgements(query_id)
            return Json(answer_of(exchange, exchange.response))
        if exchange is not None and not exchange.ended:
            return Json(state_of(exchange))
        record = await self._session.recall(query_id)
        return Json(recorded(record, await self._session.judgements(query_id)))

    async def follow(self, query_id: PathId, last_event_id: Annotated[str | None, Header()] = None) -> Response:
        """A query's events. 204, which ends an EventSource, for a client that has them all when no more will come."""
        exchange = self._session.exchange(query_id)
        if exchange is None or exchange.refused:
            record = await self._session.recall(query_id)
            exchange = self._session.ask(record["query"], query_id=query_id, session_id=record["session_id"])
            await exchange.accepted()
            await self._session.judgements(query_id)
        seen = number_after(last_event_id, self._context.instance)
        if exchange.has_nothing_after(seen):
            await self._session.judgements(query_id)  # what this door has not heard is on record
            if exchange.has_nothing_after(seen) and self._trail().seconds_left(exchange) <= 0:
                return Response(status_code=204)
        return self._stream(exchange, last_event_id)

    async def cancel(self, query_id: PathId) -> Response:
        """Stop a query: 202 if it was still open, else 200 with how it ended."""
        exchange = self._session.exchange(query_id)
        if exchange is None or exchange.ended:
            record = await self._session.recall(query_id)
            if record["status"] != "open":
                return Json({"query_id": query_id, "status": record["status"]})
        await self._session.cancel(query_id)
        return Json({"query_id": query_id, "status": "cancelling"}, 202)

    async def _check_attachments(self, ids: Sequence[str]) -> None:
        """Refuse at once what the turn would fail of."""
        try:
            for attachment_id in ids:
                await self._context.attachments.look_up(attachment_id)
        except AttachmentMissing as error:
            raise Refusal("invalid", f"attachments: {error}", "attachments") from None

    def _stream(self, exchange: Exchange, last_event_id: str | None) -> Response:
        context = self._context
        after = number_after(last_event_id, context.instance)
        settings = StreamSettings(context.instance, self._trail(), context.keep_alive_seconds)
        return EventStream(query_chunks(exchange, after, settings))

    def _trail(self) -> Trail:
        return Trail(self._context.trail_seconds, self._awaited)

    def _awaited(self) -> frozenset[str]:
        """What will be said of an answer, by those who are there now to say it."""
        table, now = self._context.participants, self._context.clock()
        if not table.is_expected(CRITIC, now):
            return frozenset()
        judges = table.details(CRITIC, now).get("judges", f"{CRITIQUE}, {PAIRWISE}")
        possible = (CRITIQUE, PAIRWISE) if table.is_expected(SECOND_RESPONDENT, now) else (CRITIQUE,)
        return frozenset(kind for kind in possible if kind in judges)


async def _whole(exchange: Exchange) -> Response:
    try:
        response = await exchange.outcome()
    except QueryRefused as refusal:
        if refusal.kind != "cancelled":
            raise
        return Json(cancelled_unbegun(exchange, refusal))
    return Json(answer_of(exchange, response), 502 if response.status == "failed" else 200)
