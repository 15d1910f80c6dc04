"""Queries: ask, follow, look at, stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import Id, PathId, api
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import EventStream
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.apps.api.principals import Caller, Principal, principal_of
from local.apps.api.query_models import model_of
from local.apps.api.query_profiles import profile_of, with_profile
from local.apps.api.query_stream import StreamSettings, number_after, query_chunks
from local.apps.api.trace_view import respondent_view, trace_view
from local.errors import AttachmentMissing
from local.protocol.agent_messages import AgentChanged
from local.protocol.answer_options import AnswerOptions, with_mode, with_model
from local.protocol.safety import Mode
from local.queries.errors import QueryRefused
from local.queries.live_query import LiveQuery
from local.queries.query_agents import agents_in

EVENTS = "text/event-stream"
MAX_ATTACHMENTS = 16
MAX_TOOLS = 64

FileId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]

CallId = Annotated[str, Path(pattern=r"^[A-Za-z0-9._:~-]{1,160}$")]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; expected a question")
    return text


class ToolsBody(BaseModel):
    """The tools that the model is offered for one answer: those in `allow` (null: all) that are not in `deny`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    allow: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS, strict=False)] | None = None
    deny: Annotated[tuple[ToolName, ...], Field(max_length=MAX_TOOLS, strict=False)] = ()


class QueryBody(BaseModel):
    """The body of POST /query. Without a session_id the query is a session of its own."""

    model_config = ConfigDict(extra="forbid", strict=True)
    query: Annotated[str, AfterValidator(_not_blank)]
    attachments: Annotated[tuple[FileId, ...], Field(max_length=MAX_ATTACHMENTS, strict=False)] = ()
    query_id: Id | None = None
    session_id: Id | None = None
    user_id: Id | None = None
    incognito: bool = False
    tools: ToolsBody | None = None
    mode: Mode | None = None
    profile: Annotated[str, StringConstraints(max_length=64)] | None = None
    model: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    wait: bool = True


def add_routes(routes: APIRouter) -> None:
    """The routes under /query."""
    queries = _Queries()
    # Answers; the same below describes it. FastAPI's own handling, which solves dependencies, costs 50 µs a query more.
    routes.add_route("/query", queries.ask, methods=["POST"], include_in_schema=False)
    routes.add_api_route("/query", queries.ask, methods=["POST"], openapi_extra=takes(QueryBody))
    routes.add_api_route("/query/{query_id}", queries.look_up, methods=["GET"])
    routes.add_api_route("/query/{query_id}/results/{call_id}", queries.result, methods=["GET"])
    routes.add_api_route("/query/{query_id}/events", queries.follow, methods=["GET"])
    routes.add_api_route("/query/{query_id}/trace", queries.trace, methods=["GET"])
    routes.add_api_route("/query/{query_id}/respondents", queries.respondents, methods=["GET"])
    routes.add_api_route("/query/{query_id}/cancel", queries.cancel, methods=["POST"])


class _Queries:
    @open_to(Access.USERS)
    async def ask(self, request: Request) -> Response:
        """Ask. The whole answer; or with `Accept: text/event-stream` events; or with `"wait": false` the ids at once.

        The same query_id again is the same query: it joins the turn, or gets the answer there is. A query that was
        cancelled, even before its turn came, is answered with 200 and status "cancelled"; a failed turn with 502 and
        what there is of its answer.
        """
        asked = await read_body(request, QueryBody)
        caller = principal_of(request)
        streams = EVENTS in request.headers.get("accept", "")
        mode = api().mode_of(asked.mode, caller, is_followed=streams or not asked.wait)
        tools = AnswerOptions(allow=asked.tools.allow, deny=asked.tools.deny) if asked.tools else None
        if asked.profile is not None:
            tools = with_profile(tools, await profile_of(asked.profile, caller))
        if asked.model is not None:
            tools = with_model(tools, await model_of(asked.model))
        await self._check_attachments(asked.attachments, caller)
        user_id = caller.acting_for(asked.user_id).user_id
        await api().require_budget(user_id, asked.session_id, asked.query_id)
        query = api().session.ask(
            asked.query,
            attachments=asked.attachments,
            query_id=asked.query_id,
            session_id=asked.session_id,
            user_id=user_id,
            incognito=asked.incognito,
            options=with_mode(tools, mode),
        )
        if not asked.wait:
            await query.accepted()
            return JsonResponse({"query_id": query.query_id, "session_id": query.view.session_id}, 202)
        if streams:
            await query.accepted()
            return self._stream(query, request.headers.get("last-event-id"))
        return await _whole(query)

    @open_to(Access.USERS)
    async def look_up(self, query_id: PathId, caller: Caller) -> Response:
        """A query's answer with its scores, or what was said so far."""
        live, view = await api().queries.find(query_id, caller)
        if live is None or view.ended:
            await api().session.recall_judgements(live or view)
        return JsonResponse(view.as_json())

    @open_to(Access.USERS)
    async def result(self, query_id: PathId, call_id: CallId, caller: Caller) -> Response:
        """The whole result of a tool call that was cut off; with `Range` a part of it."""
        _, view = await api().queries.find(query_id, caller)
        whole = next((call.get("whole") for call in view.as_json()["tool_calls"] if call["call_id"] == call_id), None)
        file = api().blobs.find(whole["$blob"]) if whole else None
        if file is None:
            raise QueryRefused("not_found", f"call {call_id}: no more of a result is kept than the query has")
        return FileResponse(file, media_type="text/plain; charset=utf-8")

    @open_to(Access.USERS)
    async def follow(
        self, query_id: PathId, caller: Caller, last_event_id: Annotated[str | None, Header()] = None
    ) -> Response:
        """A query's events. 204, which ends an EventSource, for a client that has them all when no more will come."""
        query = await api().queries.follow(query_id, caller)
        seen = number_after(last_event_id, api().instance)
        if query.has_nothing_after(seen):
            await api().session.recall_judgements(query)  # what was not heard here is on record
            if query.has_nothing_after(seen) and api().queries.trail.seconds_left(query) <= 0:
                return Response(status_code=204)
        return self._stream(query, last_event_id)

    @open_to(Access.USERS)
    async def trace(self, query_id: PathId, caller: Caller) -> Response:
        """What a query has caused, message by message, and what its time went into."""
        live, _ = await api().queries.find(query_id, caller)
        recorded, traced = await api().session.recorded(query_id)
        told = trace_view(recorded, traced, live.view.log if live else ())
        return JsonResponse({**told, "agents": [await _agent_trace(each) for each in agents_in(recorded).values()]})

    @open_to(Access.USERS)
    async def respondents(self, query_id: PathId, caller: Caller) -> Response:
        """What each respondent makes of a query, also those whom users do not see otherwise."""
        await api().queries.find(query_id, caller)
        views = await api().session.respondents(query_id)
        return JsonResponse({"query_id": query_id, "respondents": [respondent_view(view) for view in views]})

    @open_to(Access.USERS)
    async def cancel(self, query_id: PathId, caller: Caller) -> Response:
        """Stop a query: 202 if it was still open, else 200 with how it ended."""
        _, view = await api().queries.find(query_id, caller)
        if view.status != "open":
            return JsonResponse({"query_id": query_id, "status": view.status})
        await api().session.cancel(query_id, view.user_id)
        return JsonResponse({"query_id": query_id, "status": "cancelling"}, 202)

    async def _check_attachments(self, ids: Sequence[str], caller: Principal) -> None:
        """Refuse at once what the turn would fail of, and files of others."""
        try:
            for attachment_id in ids:
                await api().attachments.look_up(attachment_id, caller.user_id)
        except AttachmentMissing as error:
            raise RequestRefused("invalid", f"attachments: {error}", "attachments") from None

    def _stream(self, query: LiveQuery, last_event_id: str | None) -> Response:
        after = number_after(last_event_id, api().instance)
        settings = StreamSettings(api().instance, api().queries.trail, api().keep_alive_seconds)
        return EventStream(query_chunks(query, after, settings))


async def _agent_trace(agent: AgentChanged) -> dict[str, Any]:
    """What an agent has caused, with its own agents."""
    recorded, traced = await api().session.recorded(agent.task_query_id)
    told = agent.model_dump(include={"agent_id", "name", "depth", "state"})
    below = [await _agent_trace(each) for each in agents_in(recorded).values()]
    return {**told, **trace_view(recorded, traced, ()), "agents": below}


async def _whole(query: LiveQuery) -> Response:
    try:
        response = await query.outcome()
    except QueryRefused as refusal:
        if refusal.kind != "cancelled":
            raise
        return JsonResponse(query.view.as_cancelled())
    return JsonResponse(query.view.as_json(), 502 if response.status == "failed" else 200)
