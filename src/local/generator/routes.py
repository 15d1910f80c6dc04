"""Queries: ask, follow, look at, stop."""

from __future__ import annotations

import asyncio
import logging
import re
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from local.api.context import api
from local.api.http import (
    ID_PATTERN,
    Download,
    EventStream,
    Id,
    JsonResponse,
    PathId,
    RequestRefused,
    read_body,
    takes,
    waited,
)
from local.api.models import model_of
from local.api.profiles import profile_of, with_profile
from local.api.queries import StreamSettings, number_after, query_chunks
from local.api.security import Access, Caller, Principal, open_to, principal_of
from local.bus.envelope import new_id
from local.bus.message import Delivery, ErrorInfo, delivery_of
from local.bus.messages import AnswerOptions, SessionSettings, with_mode, with_model
from local.bus.vocabulary import Mode
from local.core.errors import AttachmentMissing, LocalError
from local.memory.messages import OWNER, MemoryRequest, MemoryResult
from local.queries.asker import LiveQuery
from local.queries.errors import QueryRefused
from local.queries.otlp import load_otel, send
from local.queries.record import RecordedMessage, agents_in
from local.queries.view import LogLine, QueryTrace, QueryView
from local.swarm.messages import AgentChanged

log = logging.getLogger(__name__)

MEMORY = "memory"

# The messages before a question.


def add_prompt_routes(routes: APIRouter) -> None:
    """GET /prompt."""

    @routes.get("/prompt")
    @open_to(Access.OWNER)
    async def show(
        caller: Caller, mode: Annotated[Mode | None, Query()] = None, profile: Annotated[str | None, Query()] = None
    ) -> Response:
        """The system prompt of the owner's queries, section by section, with the origin and cost of each."""
        options = AnswerOptions(mode=mode)
        if profile is not None:
            options = with_profile(options, await profile_of(profile, caller))
        return JsonResponse(await api().session.look_up("prompt", options=options))


# The course of a query as JSON: its messages, the spans of its time, and each respondent's answer.

Json = dict[str, Any]
_OF_EVENTS = ("events", "event_log")


def trace_view(recorded: Sequence[RecordedMessage], trace: QueryTrace, log: Sequence[LogLine]) -> Json:
    """Return the trace as JSON. `log` are the subjects received live; unrecorded messages appear only there."""
    envelopes = [message.as_json() for message in recorded]
    if log and trace.asked_at is not None:
        envelopes = sorted([*envelopes, *_unrecorded(log, trace)], key=lambda each: float(str(each["sent_at"])))
    return {
        "query_id": trace.query_id,
        "complete": trace.is_complete and trace.has_ended and trace.asked_at is not None,
        "envelopes": envelopes,
        "spans": [span._asdict() for span in trace.spans()],
        "attempts": [attempt._asdict() for attempt in trace.attempts()],
        "critical_path": trace.critical_path(),
        "self_time": trace.self_time(),
    }


def respondent_view(view: QueryView) -> Json:
    """Return one respondent's answer to a query."""
    shown = {name: value for name, value in view.as_json().items() if name not in _OF_EVENTS}
    return {"respondent_id": view.respondent_id, **shown}


def _unrecorded(log: Sequence[LogLine], trace: QueryTrace) -> Iterator[Json]:
    """Equal consecutive ones are one line with their number."""
    for line in log:
        if delivery_of(line.subject) is Delivery.EPHEMERAL:
            at = (trace.asked_at or 0.0) + line.t
            yield {
                "id": None, "subject": line.subject, "sent_at": at, "correlation_id": trace.query_id, "seq": None,
                "recorded": False, "redacted": False, "count": line.count, "summary": None,
            }  # fmt: skip


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


def _printable(text: str) -> str:
    if any(unicodedata.category(letter) == "Cc" and letter not in "\n\t" for letter in text):
        raise ValueError("has control characters; expected text")
    return text


class SettingsBody(BaseModel):
    """How the questions of a conversation are answered. Omitted fields have their default; `profile` is only stored for
    frontends, which send it with each question.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    profile: Annotated[str, StringConstraints(max_length=64)] = ""
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, strict=False)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    instructions: Annotated[str, StringConstraints(max_length=8000), AfterValidator(_printable)] = ""

    def kept(self) -> SessionSettings | None:
        """The settings as a conversation keeps them; None where all are the defaults."""
        settings = SessionSettings.model_validate(self.model_dump())
        return None if settings == SessionSettings() else settings


class QueryBody(BaseModel):
    """The body of POST /query. Without a session_id the query is a session by itself. `model` and `settings` are those
    of the conversation from this query on.
    """

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
    settings: SettingsBody | None = None
    wait: bool = True


def add_query_routes(routes: APIRouter) -> None:
    """The routes under /query."""
    queries = _Queries()
    routes.add_api_route("/query", queries.ask, methods=["POST"], openapi_extra=takes(QueryBody))
    routes.add_api_route("/query/{query_id}", queries.look_up, methods=["GET"])
    routes.add_api_route("/query/{query_id}/results/{call_id}", queries.result, methods=["GET"])
    routes.add_api_route("/query/{query_id}/events", queries.follow, methods=["GET"])
    routes.add_api_route("/query/{query_id}/trace", queries.trace, methods=["GET"])
    routes.add_api_route("/query/{query_id}/trace/send", queries.send_trace, methods=["POST"])
    routes.add_api_route("/query/{query_id}/respondents", queries.respondents, methods=["GET"])
    routes.add_api_route("/query/{query_id}/cancel", queries.cancel, methods=["POST"])


class _Queries:
    @open_to(Access.USERS)
    async def ask(self, request: Request) -> Response:
        """Ask a question. The reply is the whole answer; with `Accept: text/event-stream` events; with `"wait": false`
        the ids at once.

        The same query_id again is the same query: it joins the turn or returns the stored answer. A query that was
        cancelled, even before its turn began, is answered with 200 and status "cancelled"; a failed turn with 502 and
        its partial answer.
        """
        asked = await read_body(request, QueryBody)
        caller = principal_of(request)
        streams = EVENTS in request.headers.get("accept", "")
        mode = api().mode_of(asked.mode, caller, is_followed=streams or not asked.wait)
        tools = AnswerOptions(allow=asked.tools.allow, deny=asked.tools.deny) if asked.tools else None
        if asked.profile is not None:
            tools = with_profile(tools, await profile_of(asked.profile, caller))
        if asked.model is not None:
            tools = with_model(tools, await model_of(asked.model, caller))
        if asked.settings is not None:
            tools = (tools or AnswerOptions()).model_copy(update={"settings": asked.settings.kept()})
        await self._check_attachments(asked.attachments, caller)
        user_id = caller.acting_for(asked.user_id).user_id
        await api().require_may_ask(user_id, tools, asked.session_id, asked.query_id)
        query = api().session.ask(
            asked.query,
            attachments=asked.attachments,
            query_id=asked.query_id,
            session_id=asked.session_id,
            user_id=user_id,
            incognito=asked.incognito,
            options=with_mode(tools, mode),
            waited=waited(request),
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
        """A query's answer with its scores, or the partial answer so far."""
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
            await api().session.recall_judgements(query)  # those that were missed here are on record
            if query.has_nothing_after(seen) and api().queries.trail.seconds_left(query) <= 0:
                return Response(status_code=204)
        return self._stream(query, last_event_id)

    @open_to(Access.USERS)
    async def trace(self, query_id: PathId, caller: Caller) -> Response:
        """The messages that a query has caused, and how its time was spent."""
        live, _ = await api().queries.find(query_id, caller)
        recorded, traced = await api().session.recorded(query_id)
        told = trace_view(recorded, traced, live.view.log if live else ())
        return JsonResponse({**told, "agents": await _agents(recorded)})

    @open_to(Access.TOKEN)
    async def send_trace(self, query_id: PathId, caller: Caller) -> Response:
        """Send the trace of a query, with those of its agents, to the OpenTelemetry collector that `otel.yaml` names;
        `spans` is how many it has.
        """
        _, view = await api().queries.find(query_id, caller)
        recorded, traced = await api().session.recorded(query_id)
        told = {**trace_view(recorded, traced, ()), "agents": await _agents(recorded)}
        config = await asyncio.to_thread(load_otel, api().layers, api().data_dir)
        spans = await asyncio.to_thread(send, told, config, view.as_json())
        return JsonResponse({"spans": spans, "endpoint": config.url})

    @open_to(Access.USERS)
    async def respondents(self, query_id: PathId, caller: Caller) -> Response:
        """The answers of all respondents to a query, also of those that users do not see otherwise."""
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
        """Refuse missing files, which would fail the turn, and files of other users at once."""
        try:
            for attachment_id in ids:
                await api().attachments.look_up(attachment_id, caller.user_id)
        except AttachmentMissing as error:
            raise RequestRefused("invalid", f"attachments: {error}", "attachments") from None

    def _stream(self, query: LiveQuery, last_event_id: str | None) -> Response:
        after = number_after(last_event_id, api().instance)
        settings = StreamSettings(api().instance, api().queries.trail, api().keep_alive_seconds)
        return EventStream(query_chunks(query, after, settings))


async def _agents(recorded: Sequence[RecordedMessage]) -> list[Json]:
    """Return the traces of the agents of a query, each with those of its own agents."""
    return [await _agent_trace(agent) for agent in agents_in(recorded).values()]


async def _agent_trace(agent: AgentChanged) -> Json:
    recorded, traced = await api().session.recorded(agent.task_query_id)
    told = agent.model_dump(include={"agent_id", "name", "depth", "state"})
    return {**told, **trace_view(recorded, traced, ()), "agents": await _agents(recorded)}


async def _whole(query: LiveQuery) -> Response:
    try:
        response = await query.outcome()
    except QueryRefused as refusal:
        if refusal.kind != "cancelled":
            raise
        return JsonResponse(query.view.as_cancelled())
    return JsonResponse(query.view.as_json(), 502 if response.status == "failed" else 200)


# A whole conversation as a file: Markdown to read, JSON with everything.

Turns = AsyncGenerator[list[Json], None]
Chunks = AsyncGenerator[bytes, None]
NAME_CHARACTERS = 60


def file_name(title: str, ending: str) -> str:
    """A name that every file system takes, made of a title."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:NAME_CHARACTERS].strip("-")
    return f"{words or 'conversation'}.{ending}"


async def as_json(session: Json, turns: Turns) -> Chunks:
    """Return one object: the session's row, and its `turns`."""
    yield b'{"session":%b,"turns":[' % to_json(session)
    separator = b""
    async for some in turns:
        for turn in some:
            yield separator + to_json(turn)
            separator = b",\n"
    yield b"]}\n"


async def as_markdown(session: Json, turns: Turns) -> Chunks:
    """Questions and answers, with the thinking folded, and the tools that were called."""
    yield f"# {_one_line(session['title']) or session['session_id']}\n".encode()
    async for some in turns:
        for turn in some:
            yield _turn(turn).encode()


def _turn(turn: Json) -> str:
    asked_at = datetime.fromtimestamp(turn["created_at"]).astimezone().isoformat(" ", "minutes")
    parts = [f"\n## {asked_at}\n", *_quoted(turn["query"])]
    parts += [f"> 📎 {file['name'] or file['id']}" for file in turn["attachments"]]
    if turn["thinking"]:
        parts += ["", "<details><summary>Thinking</summary>", "", turn["thinking"], "", "</details>"]
    parts += ["", *map(_call, turn["tool_calls"])] if turn["tool_calls"] else []
    parts += ["", turn["answer"] or ""]
    if turn["error"]:
        parts.append(f"*{turn['status']}: {turn['error']['message']}*")
    elif turn["status"] != "answered":
        parts.append(f"*{turn['status']}*")
    return "\n".join(parts) + "\n"


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.splitlines()]


def _call(call: Json) -> str:
    arguments = ", ".join(f"{name}={to_json(value).decode()}" for name, value in call["args"].items())
    sources = ", ".join(call.get("sources") or ())
    error = call.get("error")
    how = f" failed: {error['message']}" if error else f" → {sources}" if sources else ""
    return f"- `{call['tool']}({_one_line(arguments)})`{how}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


# The turns of a session in pages, each with its files and the ratings of its answer.

AT_ONCE = 100  # turns, as many as their scores can be asked for


class TurnListing:
    """A session's turns for HTTP: reads them from the generator, in as many pieces as it takes. Raises as
    `LoCALSession.look_up`; of a user `of_user` other sessions than that one's are not found."""

    async def before(self, session_id: str, query_id: str, limit: int, of_user: str | None) -> Json:
        """The `limit` turns before a query, or the last ones; the oldest first."""
        page = await self._piece(session_id, of_user, "before", limit, at=query_id)
        turns = page["turns"][::-1]
        newer = turns[-1]["query_id"] if turns and query_id else None
        return await self._page(page, turns, turns[0]["query_id"] if page["more"] else None, newer)

    async def after(self, session_id: str, query_id: str, limit: int, of_user: str | None) -> Json:
        """The `limit` turns after a query, the oldest first."""
        page = await self._piece(session_id, of_user, "after", limit, at=query_id)
        turns = page["turns"]
        older = turns[0]["query_id"] if turns else None
        return await self._page(page, turns, older, turns[-1]["query_id"] if page["more"] else None)

    async def around(self, session_id: str, query_id: str, limit: int, of_user: str | None) -> Json:
        """A query's turn with about as many turns before it as after it."""
        there = await self._piece(session_id, of_user, "at", 1, at=query_id)
        older = await self._piece(session_id, of_user, "before", max(1, (limit - 1) // 2), at=query_id)
        left = max(1, limit - 1 - len(older["turns"]))
        newer = await self._piece(session_id, of_user, "after", left, at=query_id)
        turns = [*older["turns"][::-1], *there["turns"], *newer["turns"]]
        first, last = turns[0]["query_id"], turns[-1]["query_id"]
        return await self._page(there, turns, first if older["more"] else None, last if newer["more"] else None)

    async def all(self, session_id: str, of_user: str | None) -> AsyncGenerator[list[Json], None]:
        """Every turn, the oldest first, some at a time; at least one list, which may be empty."""
        position = 0
        while True:
            piece = await api().session.look_up(
                "turns", session_id, order="after", position=position, limit=AT_ONCE, of_user=of_user
            )
            if piece["turns"]:
                position = piece["turns"][-1]["position"]
            yield await self._complete(piece["turns"])
            if not piece["more"]:
                return

    async def _piece(
        self, session_id: str, of_user: str | None, order: Literal["before", "after", "at"], limit: int, *, at: str
    ) -> Json:
        """Return turns from there on, the nearest first; `more` says whether there are others beyond them."""
        turns: list[Json] = []
        place: Json = {"at": at}
        while True:
            left = limit - len(turns)
            piece = await api().session.look_up("turns", session_id, order=order, limit=left, of_user=of_user, **place)
            turns += piece["turns"]
            if not piece["more"] or len(turns) >= limit:
                return {**piece, "turns": turns}
            place = {"position": turns[-1]["position"]}

    async def _page(self, piece: Json, turns: list[Json], before: str | None, after: str | None) -> Json:
        head = {name: piece[name] for name in ("session_id", "incognito", "total")}
        return {**head, "turns": await self._complete(turns), "before": before, "after": after}

    async def _complete(self, turns: Sequence[Json]) -> list[Json]:
        """With files and scores. A copy has those of the turn that it was made of."""
        scores: Json = {}
        for start in range(0, len(turns), AT_ONCE):
            scores |= await api().session.scores([_judged(turn) for turn in turns[start : start + AT_ONCE]])
        files = {each: await self._file(each) for each in dict.fromkeys(_named(turns))}
        return [
            {
                **{name: value for name, value in turn.items() if name != "position"},
                "attachments": [files[each] for each in turn["attachments"]],
                "scores": scores[_judged(turn)],
            }
            for turn in turns
        ]

    async def _file(self, attachment_id: str) -> Json:
        """Return a file's record; of one that was removed only its id."""
        try:
            view = await api().attachments.look_up(attachment_id)
        except AttachmentMissing:
            return {"id": attachment_id, "name": None, "media_type": None, "size": None}
        return {"id": view.id, "name": view.name, "media_type": view.media_type, "size": view.size}


def _judged(turn: Json) -> str:
    return str(turn["copy_of"] or turn["query_id"])


def _named(turns: Sequence[Json]) -> list[str]:
    return [each for turn in turns for each in turn["attachments"]]


# Conversations, as the generator has them on record.

SEARCH_SECONDS, CHANGE_SECONDS = 15.0, 15.0

Limit = Annotated[int, Query(ge=1, le=1000)]
TurnLimit = Annotated[int, Query(ge=1, le=200)]
Words = Annotated[str, Query(max_length=500)]
Phrase = Annotated[str, Query(min_length=1, max_length=500)]
Cursor = Annotated[str, Query(max_length=200)]
Place = Annotated[str | None, Query(pattern=ID_PATTERN)]


def _plain(text: str) -> str:
    if any(unicodedata.category(letter) == "Cc" for letter in text):
        raise ValueError("has control characters; expected one line of text")
    return text


Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_plain)]


DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # turn the text after them around


def _one_way(text: str) -> str:
    if DIRECTIONS.intersection(text):
        raise ValueError("has characters that change the direction of the text; expected plain text")
    return _plain(text)


def _once_each(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))


def _no_comma(text: str) -> str:
    if "," in text:
        raise ValueError("has a comma; expected one tag")
    return text


MAX_TAGS = 16
MAX_AT_ONCE = 200
Folder = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80), AfterValidator(_one_way)]
Tag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=40),
    AfterValidator(_one_way),
    AfterValidator(_no_comma),
]
Tags = Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS, strict=False), AfterValidator(_once_each)]
Ids = Annotated[tuple[Id, ...], Field(min_length=1, max_length=MAX_AT_ONCE, strict=False), AfterValidator(_once_each)]


class LabelsBody(BaseModel):
    """The body of PATCH /sessions/{session_id}; a title of null gives the session its automatic title back, a
    folder of null takes it out of its folder. All `settings` are replaced together; null gives it the defaults."""

    model_config = ConfigDict(extra="forbid", strict=True)
    title: Title | None = None
    pinned: bool = False
    settings: SettingsBody | None = None
    folder: Folder | None = None
    tags: Tags = ()
    archived: bool = False


class ManyChangedBody(BaseModel):
    """The body of POST /sessions/change: the change for all of these sessions."""

    model_config = ConfigDict(extra="forbid", strict=True)
    session_ids: Ids
    pinned: bool = False
    folder: Folder | None = None
    archived: bool = False
    add_tags: Tags = ()
    remove_tags: Tags = ()


class ManyDeletedBody(BaseModel):
    """The body of POST /sessions/delete."""

    model_config = ConfigDict(extra="forbid", strict=True)
    session_ids: Ids


class BranchBody(BaseModel):
    """The body of POST /sessions/{session_id}/branch: the branch has the turns `before` a query, or those up to and
    with the query `through`. Without a session_id it gets a fresh one. A `version` is listed together with the
    conversation that it is a version of."""

    model_config = ConfigDict(extra="forbid", strict=True)
    before: Id | None = None
    through: Id | None = None
    session_id: Id | None = None
    version: bool = False


def add_session_routes(routes: APIRouter) -> None:
    """The routes under /sessions."""
    sessions = _Sessions()
    one = "/sessions/{session_id}"
    routes.add_api_route("/sessions", sessions.listing, methods=["GET"])
    routes.add_api_route(
        "/sessions/change", sessions.change_many, methods=["POST"], openapi_extra=takes(ManyChangedBody)
    )
    routes.add_api_route(
        "/sessions/delete", sessions.delete_many, methods=["POST"], openapi_extra=takes(ManyDeletedBody)
    )
    routes.add_api_route(one, sessions.show, methods=["GET"])
    routes.add_api_route(one, sessions.change, methods=["PATCH"], openapi_extra=takes(LabelsBody))
    routes.add_api_route(one, sessions.delete, methods=["DELETE"])
    routes.add_api_route(one + "/turns", sessions.turns, methods=["GET"])
    routes.add_api_route(one + "/find", sessions.find, methods=["GET"])
    routes.add_api_route(one + "/export", sessions.export, methods=["GET"])
    routes.add_api_route(one + "/branch", sessions.branch, methods=["POST"], openapi_extra=takes(BranchBody))


class _Sessions:
    def __init__(self) -> None:
        self._turns = TurnListing()

    @open_to(Access.USERS)
    async def listing(
        self, caller: Caller, query: Words = "", folder: Words | None = None, tag: Words | None = None,
        archived: Literal["false", "true", "any"] = "false", cursor: Cursor = "", limit: Limit = 1000,
    ) -> Response:  # fmt: skip
        """A page of the sessions, the pinned ones and then the most recent first; with `query` those in whose title, or
        in one of whose questions with its answer, all of these words occur. The first page has the names of all folders
        and tags.
        """
        fields: dict[str, Any] = {"query": query, "folder": folder, "tag": tag, "cursor": cursor, "limit": limit}
        fields["archived"] = None if archived == "any" else archived == "true"
        return JsonResponse(await api().session.look_up("sessions", caller.user_id or "", SEARCH_SECONDS, **fields))

    @open_to(Access.USERS)
    async def show(self, session_id: PathId, caller: Caller) -> Response:
        """One session: its last turns, its branches, and its messages as they are sent to the model."""
        return JsonResponse(await api().session.look_up("session", session_id, of_user=caller.user_id))

    @open_to(Access.USERS)
    async def turns(
        self, session_id: PathId, caller: Caller, before: Place = None, after: Place = None, around: Place = None,
        limit: TurnLimit = 50,
    ) -> Response:  # fmt: skip
        """The last turns with all their data, the oldest first; or those before, after or around a query. `before` and
        `after` of the answer are where the next page begins, null if there is none.
        """
        given = [name for name, place in (("before", before), ("after", after), ("around", around)) if place]
        if len(given) > 1:
            raise RequestRefused("invalid", f"{' and '.join(given)}: a page has one place; give one of them", given[1])
        user = caller.user_id
        if after:
            return JsonResponse(await self._turns.after(session_id, after, limit, user))
        if around:
            return JsonResponse(await self._turns.around(session_id, around, limit, user))
        return JsonResponse(await self._turns.before(session_id, before or "", limit, user))

    @open_to(Access.USERS)
    async def find(self, session_id: PathId, query: Phrase, caller: Caller) -> Response:
        """The places of a text in a session, whatever its case."""
        found = await api().session.look_up("find", session_id, SEARCH_SECONDS, query=query, of_user=caller.user_id)
        return JsonResponse({"session_id": session_id, "hits": found["hits"]})

    @open_to(Access.USERS)
    async def export(
        self, session_id: PathId, caller: Caller, format: Literal["markdown", "json"] = "markdown"
    ) -> Response:
        """A session as a file, whatever its length."""
        found = await api().session.look_up("session", session_id, of_user=caller.user_id)
        session = {name: value for name, value in found.items() if name not in ("turns", "messages", "context")}
        turns, title = self._turns.all(session_id, caller.user_id), session["title"] or ""
        if format == "json":
            return Download(as_json(session, turns), file_name(title, "json"), "application/json")
        return Download(as_markdown(session, turns), file_name(title, "md"), "text/markdown; charset=utf-8")

    @open_to(Access.USERS)
    async def change(self, session_id: PathId, request: Request, caller: Caller) -> Response:
        """Change a session's title, pin, settings, folder or tags, or archive it, in all its versions; returns it as
        it is listed then."""
        asked = await read_body(request, LabelsBody)
        labels = asked.model_dump(exclude_unset=True)
        if not labels:
            wanted = "title, pinned, settings, folder, tags or archived"
            raise RequestRefused("invalid", f"nothing is to be changed; expected {wanted}")
        if asked.settings is not None:
            if asked.settings.profile:
                await profile_of(asked.settings.profile, caller)
            labels["settings"] = asked.settings.kept()
        fields: dict[str, Any] = {"labels": labels, "of_user": caller.user_id}
        return JsonResponse(await api().session.look_up("change", session_id, CHANGE_SECONDS, **fields))

    @open_to(Access.USERS)
    async def change_many(self, request: Request, caller: Caller) -> Response:
        """Move, tag, pin or archive several sessions: for each the changed row of the session, or its error."""
        body = await read_body(request, ManyChangedBody)
        labels = body.model_dump(exclude_unset=True, include={"pinned", "folder", "archived"})
        if not (labels or body.add_tags or body.remove_tags):
            raise RequestRefused(
                "invalid", "nothing is to be changed; expected folder, pinned, archived, add_tags or remove_tags"
            )

        async def change(session_id: str) -> Json:
            tags = await self._tags(session_id, body, caller.user_id)
            fields: dict[str, Any] = {"labels": labels | tags, "of_user": caller.user_id}
            return {"session": await api().session.look_up("change", session_id, CHANGE_SECONDS, **fields)}

        return JsonResponse({"results": await _each(body.session_ids, change)})

    async def _tags(self, session_id: str, body: ManyChangedBody, user_id: str | None) -> Json:
        if not (body.add_tags or body.remove_tags):
            return {}
        known = (await api().session.look_up("session", session_id, of_user=user_id))["tags"] or ()
        tags = [tag for tag in dict.fromkeys((*known, *body.add_tags)) if tag not in body.remove_tags]
        if len(tags) > MAX_TAGS:
            raise RequestRefused("invalid", f"the conversation would have {len(tags)} tags; at most {MAX_TAGS} fit")
        return {"tags": tuple(tags)}

    @open_to(Access.USERS)
    async def delete_many(self, request: Request, caller: Caller) -> Response:
        """Delete several sessions permanently, with all their versions: for each the result, or its error."""
        body = await read_body(request, ManyDeletedBody)

        async def delete(session_id: str) -> Json:
            return await self._delete_all(session_id, caller)

        return JsonResponse({"results": await _each(body.session_ids, delete)})

    @open_to(Access.USERS)
    async def branch(self, session_id: PathId, request: Request, caller: Caller) -> Response:
        """Go on from an earlier place: a new session that begins with the turns before a query, or up to one."""
        wanted = await read_body(request, BranchBody)
        if bool(wanted.before) == bool(wanted.through):
            raise RequestRefused("invalid", "before, through: expected one of them", "before")
        fields: dict[str, Any] = {
            "before": wanted.before or "", "through": wanted.through or "", "is_version": wanted.version,
            "branch_id": wanted.session_id or new_id(), "of_user": caller.user_id,
        }  # fmt: skip
        return JsonResponse(await api().session.look_up("branch", session_id, CHANGE_SECONDS, **fields), 201)

    @open_to(Access.USERS)
    async def delete(self, session_id: PathId, caller: Caller, versions: bool = False) -> Response:
        """Delete a session permanently, with `versions` also the other versions of the conversation; not while one of
        its queries is open. Memories elsewhere may repeat it, and branches keep their copies: the response has their
        ids, for memories null without a memory participant.
        """
        if not versions:
            return JsonResponse(await self._delete(session_id, caller))
        return JsonResponse(await self._delete_all(session_id, caller))

    async def _delete_all(self, session_id: str, caller: Principal) -> Json:
        """All versions of a conversation."""
        found = await api().session.look_up("session", session_id, of_user=caller.user_id)
        done = [await self._delete(each, caller) for each in found["versions"]]
        repeated = [each["repeated_in"] for each in done]
        left = {each for one in done for each in one["copied_to"]} - set(found["versions"])
        return {
            "session_id": session_id,
            **{name: sum(each[name] for each in done) for name in ("deleted_turns", "redacted_messages")},
            "copied_to": sorted(left),
            "repeated_in": None if None in repeated else sorted({each for one in repeated for each in one}),
        }

    async def _delete(self, session_id: str, caller: Principal) -> Json:
        repeated_in = await _repeated_in(session_id)  # known for as long as the session is
        deleted = await api().session.delete(session_id, caller.user_id)
        return {**deleted, "repeated_in": repeated_in}


async def _each(session_ids: Sequence[str], work: Callable[[str], Awaitable[Json]]) -> list[Json]:
    """Do the work for each session in order; an error for one does not stop the others."""
    results: list[Json] = []
    for session_id in session_ids:
        try:
            results.append({"session_id": session_id, **await work(session_id), "error": None})
        except (LocalError, RequestRefused) as error:
            results.append({"session_id": session_id, "error": ErrorInfo.of(error).model_dump()})
    return results


async def _repeated_in(session_id: str) -> tuple[str, ...] | None:
    """The engrams that had recalled something of a session; None if no memory answers that knows it."""
    if not api().requests.expects(MEMORY):
        return None
    try:
        request = MemoryRequest(verb="repeated", of_session=session_id)
        return (await api().ask(MEMORY, request, MemoryResult, user_id=OWNER, seconds=20.0)).repeated_in
    except LocalError as error:
        log.warning("which memories repeat something of session %s is not known: %s", session_id, error)
        return None
