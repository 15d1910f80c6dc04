"""The part of OpenAI's API that its clients need to use LoCAL2 as a model."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from local.api.bus_stream import read_filter
from local.api.context import api
from local.api.http import RETRY_SECONDS, EventStream, JsonResponse, PathId, RequestRefused, read_body, takes, waited
from local.api.models import chat_models, model_of
from local.api.openai import (
    BATCH,
    DEFAULT_NAMES,
    OURS,
    OWN_NAME,
    REMEMBER,
    ChatRequest,
    Completion,
    EmbeddingRequest,
    answer_chunks,
    answer_to,
    as_query,
    embeddings,
    profile_in,
)
from local.api.page import FILES_PATH, INDEX, PageBundle
from local.api.profiles import profiles_for, with_profile
from local.api.queries import number_after
from local.api.responses import ModelResponse, ResponsesRequest, as_chat
from local.api.security import Access, Caller, Principal, is_own_user, open_to, principal_of
from local.api.sign_ins import CODE_SECONDS, browser_in
from local.api.stream import StreamBody
from local.bus.envelope import new_id
from local.bus.filter import MAX_TEXT, BadFilter, Filter, completions
from local.bus.messages import DEFAULT_MODEL, ControlVerb, with_mode, with_model
from local.bus.vocabulary import NON_INTERACTIVE
from local.core.errors import LocalError
from local.core.profiles import ALIASES, Profiles
from local.memory.messages import OWNER, MemoryRequest, MemoryResult

# Sign-ins of browsers.

_NO_SECRET = "this code or token is not valid: run `local2 code` for a new code"
_SIGNED_IN = "this browser is signed in already: sign out first, or open the invitation in another browser"
_OTHER_USER = (
    "this link works only on this machine, in a browser of the Unix user that runs LoCAL2; elsewhere enter the code"
    " that `local2 code` prints"
)
NOT_STORED = {"cache-control": "no-store"}


class SignInBody(BaseModel):
    """The body of POST /sign-in: a one-time code, or a token."""

    model_config = ConfigDict(extra="forbid", strict=True)
    secret: str = Field(min_length=1, max_length=500)


class CodeBody(BaseModel):
    """The body of POST /sign-in/codes: whether the code is for a `link` or to be typed."""

    model_config = ConfigDict(extra="forbid", strict=True)
    link: bool = False


class SignOutBody(BaseModel):
    """The body of POST /sign-out: this browser, or `everywhere`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    everywhere: bool = False


def add_sign_in_routes(routes: APIRouter) -> None:
    """POST /sign-in, /sign-in/codes and /sign-out, and the routes under /sign-ins."""

    @routes.post("/sign-in", openapi_extra=takes(SignInBody))
    @open_to(Access.ANYBODY)
    async def sign_in(request: Request) -> Response:
        """Exchange a one-time code or a token for a cookie and a key, which a browser sends as `X-LoCAL2-Key`. The one
        without the other counts for nothing."""
        user = await _whose((await read_body(request, SignInBody)).secret.strip(), request)
        sign_ins, before = api().sign_ins, principal_of(request)
        if before is not None and before.sign_in:
            await asyncio.to_thread(sign_ins.end, before.sign_in)
        browser = browser_in(request.headers.get("user-agent", ""))
        halves = await asyncio.to_thread(sign_ins.begin, user, browser)
        body = {"key": halves.key, "user_id": user or OWNER, "owner": user is None}
        cookie = sign_ins.cookie(halves.cookie, is_secure=_is_secure(request))
        return JsonResponse(body, headers={**NOT_STORED, "set-cookie": cookie})

    @routes.post("/sign-in/codes", openapi_extra=takes(CodeBody))
    @open_to(Access.TOKEN)
    async def code(request: Request) -> Response:
        """A new code that signs one browser in as the owner, once, within ten minutes. That of a link works only for
        the Unix user that runs the system."""
        is_link = (await read_body(request, CodeBody)).link
        made = api().codes.link() if is_link else api().codes.typed()
        return JsonResponse({"code": made, "seconds": CODE_SECONDS}, 201, NOT_STORED)

    @routes.post("/sign-out", openapi_extra=takes(SignOutBody))
    @open_to(Access.USERS)
    async def sign_out(request: Request) -> Response:
        """Sign this browser out, or every browser of the same user; their open streams end."""
        body, caller = await read_body(request, SignOutBody), principal_of(request)
        ended = 0
        if body.everywhere:
            if caller.is_owner:
                api().codes.withdraw()
            ended = await asyncio.to_thread(api().sign_ins.end_all, caller.user_id)
        elif caller.sign_in:
            ended = await asyncio.to_thread(api().sign_ins.end, caller.sign_in)
        cookie = api().sign_ins.cookie("", is_secure=_is_secure(request))
        return JsonResponse({"signed_out": ended}, headers={**NOT_STORED, "set-cookie": cookie})

    @routes.get("/sign-ins")
    @open_to(Access.USERS)
    async def signed_in(caller: Caller) -> Response:
        """List the browsers of a user that are signed in, the one that was used last first: when each signed in, and on
        which day it was used last. `is_this` marks the one that asks."""
        known = api().sign_ins.all_of(caller.user_id)
        rows = [
            {
                "id": each.name,
                "browser": each.browser,
                "begun_at": each.begun_at,
                "used_at": each.used_at,
                "is_this": each.id == caller.sign_in,
            }
            for each in known
        ]
        return JsonResponse({"sign_ins": rows}, headers=NOT_STORED)

    @routes.delete("/sign-ins/{name}")
    @open_to(Access.USERS)
    async def sign_one_out(name: PathId, caller: Caller) -> Response:
        """Sign one browser of a user out; its open streams end."""
        found = api().sign_ins.named(caller.user_id, name)
        ended = await asyncio.to_thread(api().sign_ins.end, found.id)
        return JsonResponse({"signed_out": ended}, headers=NOT_STORED)


async def _whose(secret: str, request: Request) -> str | None:
    """Return the user whom a code or a token signs in, None for the owner. Raises `RequestRefused`."""
    codes = api().codes
    if codes.is_link(secret):
        if not await is_own_user(request.headers, request.scope.get("state", {}).get("peer")):
            raise RequestRefused("forbidden", _OTHER_USER)
        if codes.use_link(secret):
            return None
    if codes.use_typed(secret):
        return None
    if api().users.is_invitation(secret):
        before = principal_of(request)
        if before is not None and before.sign_in:
            raise RequestRefused("conflict", _SIGNED_IN)
        if invited := await asyncio.to_thread(api().users.use_invitation, secret):
            return invited
    found = api().principals.holder_of(secret)
    if found is None:
        raise RequestRefused("unauthorized", _NO_SECRET)
    return found.user_id


def _is_secure(request: Request) -> bool:
    return request.headers.get("origin", "").lower().startswith("https://")


# The bus, live.


def add_bus_routes(routes: APIRouter) -> None:
    """GET /events."""

    @routes.get("/events")
    @open_to(Access.USERS)
    async def events(
        request: Request,
        caller: Caller,
        filter: Annotated[str | None, Query(max_length=MAX_TEXT)] = None,
        subject: Annotated[list[str] | None, Query()] = None,
        payload: Literal["full", "none"] = "full",
    ) -> Response:
        """Every envelope that matches a filter such as `subject:tool.* -sender:generator`, and one of the subjects, if
        there are some (`response.generation`, the family `tool.result.`, the pattern `tool.*`). Without either it is
        everything.

        Users receive their own messages, the owner all; with `payload=none` only headers and sizes. An event `lost` has
        the number of messages that a slow client has missed.
        """
        wanted = read_filter(filter, subject)
        may_hear = partial(api().still_knows, principal_of(request))
        return EventStream(api().bus_streams.chunks(wanted, caller.user_id, may_hear, with_payload=payload == "full"))

    @routes.get("/events/filter")
    @open_to(Access.USERS)
    async def check_filter(caller: Caller, filter: Annotated[str, Query(max_length=MAX_TEXT)]) -> Response:
        """What is wrong with a filter, and at which of its characters, from 0; both are null if it can be used. With
        it, ways to complete its last word.
        """
        fault: BadFilter | None = None
        try:
            Filter(filter)
        except BadFilter as error:
            fault = error
        listed = api().participants.listing(api().clock()) if caller.is_owner else []
        found = completions(filter, [row["name"] for row in listed])
        return JsonResponse({
            "error": fault and str(fault),
            "position": fault and fault.position,
            "completions": [completion._asdict() for completion in found],
        })  # fmt: skip


# The system itself: participants are started, stopped and restarted. It requires the owner token on every connection.


def add_control_routes(routes: APIRouter) -> None:
    """The routes under /participants/{name}."""
    control = _Control()
    for verb, endpoint in (("start", control.start), ("stop", control.stop), ("restart", control.restart)):
        routes.add_api_route(f"/participants/{{name}}/{verb}", endpoint, methods=["POST"])


class _Control:
    @open_to(Access.TOKEN)
    async def start(self, name: PathId) -> Response:
        """Start a participant that was stopped or given up, or is new in the settings; answers when it is ready or has
        failed.
        """
        return await self._have("start", name)

    @open_to(Access.TOKEN)
    async def stop(self, name: PathId) -> Response:
        """Stop a participant and leave it stopped; not one that would be needed to start it again."""
        return await self._have("stop", name)

    @open_to(Access.TOKEN)
    async def restart(self, name: PathId) -> Response:
        """Stop a participant and start it again, with the present settings of its file; the API answers before its own
        restart.
        """
        return await self._have("restart", name)

    async def _have(self, verb: ControlVerb, name: str) -> Response:
        child = await api().control.participant(verb, name)
        return JsonResponse({"participant": child})


# How the system is, and who takes part.


def add_health_routes(routes: APIRouter) -> None:
    """GET /health and /participants."""

    @routes.get("/health")
    @open_to(Access.ANYBODY)
    async def health(request: Request, report: bool = False) -> Response:
        """200 if every configured participant is ready, else 503, with the same body; others than the owner receive
        only the status. As a `report` it is always 200: for a browser, which treats other statuses as errors.
        """
        participants, now = api().participants, api().clock()
        status = participants.health(now)
        asked_by: Principal | None = principal_of(request)
        if asked_by is None or not asked_by.is_owner:
            return _health_response({"status": status}, is_well=report or status == "ok")
        body = {
            "status": status,
            "problem": participants.problem(now) or None,
            "notice": participants.notice or None,
            "model": participants.model,
            "backend": api().backend,
            "stand_in": api().backend == "stand_in",
            "version": api().version,
            "participants": participants.listing(now),
        }
        return _health_response(body, is_well=report or status == "ok")

    @routes.get("/participants")
    @open_to(Access.OWNER)
    async def listing() -> Response:
        """Every participant with its state, process, restarts and counters."""
        return JsonResponse({"participants": api().participants.listing(api().clock())})


def _health_response(body: dict[str, Any], *, is_well: bool) -> Response:
    return JsonResponse(body) if is_well else JsonResponse(body, 503, {"retry-after": RETRY_SECONDS})


Json = dict[str, object]


def add_openai_routes(routes: APIRouter) -> None:
    """The routes under /v1."""
    openai = _OpenAi()
    chat, responses, texts = takes(ChatRequest), takes(ResponsesRequest), takes(EmbeddingRequest)
    routes.add_api_route("/v1/chat/completions", openai.complete, methods=["POST"], openapi_extra=chat)
    routes.add_api_route("/v1/responses", openai.respond, methods=["POST"], openapi_extra=responses)
    routes.add_api_route("/v1/embeddings", openai.embed, methods=["POST"], openapi_extra=texts)
    routes.add_api_route("/v1/models", openai.models, methods=["GET"])
    routes.add_api_route("/v1/models/{model_id:path}", openai.model, methods=["GET"])


class _OpenAi:
    @open_to(Access.USERS)
    async def complete(self, request: Request, caller: Caller) -> Response:
        """Answer a conversation. The messages sent are the history; no session is kept."""
        return await self._answer(await read_body(request, ChatRequest), request, caller, Completion)

    @open_to(Access.USERS)
    async def respond(self, request: Request, caller: Caller) -> Response:
        """Answer a conversation, in the form of OpenAI's responses. The items sent are the history; nothing is kept."""
        asked = as_chat(await read_body(request, ResponsesRequest))
        return await self._answer(asked, request, caller, ModelResponse)

    async def _answer(
        self, asked: ChatRequest, request: Request, caller: Principal, form: type[Completion | ModelResponse]
    ) -> Response:
        named = profile_in(asked.model)
        found = Profiles({}) if named is None else await profiles_for(caller)
        chat = await asyncio.to_thread(as_query, asked, {*found.by_name, *ALIASES})
        options = chat.options if named is None else with_profile(chat.options, found.find(named))
        model = None
        if named is None and asked.model not in DEFAULT_NAMES:
            model = await model_of(asked.model, caller, api().openai_aliases)
        await api().require_may_ask(caller.user_id, with_model(options, model))
        query_id = new_id()
        query = api().session.ask(
            chat.text,
            attachments=[await _kept(data, caller) for data in chat.pictures],
            query_id=query_id,
            user_id=caller.user_id,
            history=chat.history,
            continued=chat.continued,
            options=with_mode(with_model(options, model), NON_INTERACTIVE),
            waited=waited(request),
        )
        profile = options.profile if options is not None else None
        answering = model or (profile.model if profile else None) or DEFAULT_MODEL
        if answering == DEFAULT_MODEL:
            answering = api().participants.model or OWN_NAME
        answer = form(query_id, asked, int(time.time()), answering)
        if not asked.stream:
            return JsonResponse(answer.whole(await answer_to(query)))
        await query.accepted()
        return EventStream(answer_chunks(query, answer, api().keep_alive_seconds))

    @open_to(Access.USERS)
    async def embed(self, request: Request, caller: Caller) -> Response:
        """Vectors of texts, made by the memory's embedding model, in the order of the texts."""
        asked = await read_body(request, EmbeddingRequest)
        texts, model = asked.texts(), ""
        vectors: list[tuple[float, ...]] = []
        for start in range(0, len(texts), BATCH):
            batch = tuple(texts[start : start + BATCH])
            embedding = MemoryRequest(verb="embed", texts=batch)
            found = await api().ask("memory", embedding, MemoryResult, user_id=caller.name, seconds=20.0)
            vectors += found.vectors
            model = found.embedded_by
        return JsonResponse(embeddings(asked, model, vectors))

    @open_to(Access.USERS)
    async def models(self, caller: Caller) -> Response:
        """The model that answers by default, the others that can be chosen, `local2` for the default, its name for
        conversations that are remembered, and one for each profile."""
        return JsonResponse({"object": "list", "data": [_model(name) for name in await self._names(caller)]})

    @open_to(Access.USERS)
    async def model(self, model_id: str, caller: Caller) -> Response:
        """One of the models."""
        if model_id not in await self._names(caller):
            raise RequestRefused("not_found", f"there is no model {model_id[:100]}; GET /v1/models lists them", "model")
        return JsonResponse(_model(model_id))

    async def _names(self, caller: Principal) -> list[str]:
        model = api().participants.model
        if not model:
            return []
        try:
            others = [each.id for each in await chat_models(caller)]
        except LocalError:  # then there is the one that answers
            others = []
        profiles = (f"{OURS}{name}" for name in (await profiles_for(caller)).by_name)
        default = [model] if api().guests.has_default(caller.user_id) else []
        return list(dict.fromkeys([*default, *others, OWN_NAME, REMEMBER, *profiles]))


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "local2"}


async def _kept(data: bytes, caller: Principal) -> str:
    """Return a picture as an attachment. Raises `RequestRefused` if it is none, and `NoRoom`."""
    await api().guests.require_room(caller.user_id, len(data))
    kept = await api().attachments.add("picture", data, caller.name)
    if not kept.is_picture:
        raise RequestRefused("invalid", f"messages: {kept.media_type} is no picture; send text as text", "messages")
    return kept.id


# The web page and its files. They contain no user's data, so they need no token.

CONTENT_SECURITY_POLICY = "; ".join([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types worker",
])  # fmt: skip
"""No string becomes HTML or a script, nothing is asked of another host, and nobody frames the page. The one policy,
`worker`, can make nothing but the address of the service worker."""

PREVIEW = "preview.html"


def preview_policy(page: bytes) -> str:
    """Return the policy of the preview: content written by a model is shown in it without an origin and without network
    access; the only script is the page's own.
    """
    script = re.search(rb"<script>(.*)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[1] if script else b"").digest()).decode()
    return "; ".join([
        "default-src 'none'",
        f"script-src 'sha256-{digest}'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
        "sandbox allow-scripts",
    ])  # fmt: skip


SAFE = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
}
KEPT_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable"}


def add_page_routes(routes: APIRouter) -> None:
    """GET / and the files of the page."""
    page = _Page()
    routes.add_api_route("/", page.index, methods=["GET"])
    routes.add_api_route("/favicon.ico", page.icon, methods=["GET"])
    routes.add_api_route("/apple-touch-icon.png", page.touch_icon, methods=["GET"])
    routes.add_api_route("/manifest.webmanifest", page.manifest, methods=["GET"])
    routes.add_api_route("/worker.js", page.worker, methods=["GET"])
    routes.add_api_route(FILES_PATH + "/{digest}/{path:path}", page.file, methods=["GET"])


class _Page:
    @open_to(Access.ANYBODY)
    async def index(self, request: Request) -> Response:
        """The page, as HTML."""
        return await self._newest(INDEX, request)

    @open_to(Access.ANYBODY)
    async def icon(self, request: Request) -> Response:
        """Its picture, where browsers look for it by themselves."""
        return await self._newest("favicon.svg", request)

    @open_to(Access.ANYBODY)
    async def touch_icon(self, request: Request) -> Response:
        """The icon of the page on the home screen of a phone."""
        return await self._newest("icon-192.png", request)

    @open_to(Access.ANYBODY)
    async def worker(self, request: Request) -> Response:
        """The service worker, which keeps the page's files for times without a connection."""
        return await self._newest("worker.js", request)

    @open_to(Access.ANYBODY)
    async def manifest(self, request: Request) -> Response:
        """The manifest, which makes the page an application that can be installed."""
        return await self._newest("manifest.webmanifest", request)

    @open_to(Access.ANYBODY)
    async def file(self, digest: str, path: str, request: Request) -> Response:
        """One of the page's files, of exactly that digest: versions are never mixed."""
        bundle = await api().page.bundle(digest)
        if bundle is None:
            raise RequestRefused("not_found", "the page has changed since: load it again")
        return _sent(bundle, path, request, KEPT_FOR_GOOD)

    async def _newest(self, path: str, request: Request) -> Response:
        bundle = await api().page.newest()
        tag = f'W/"{bundle.digest}"'
        headers = {"cache-control": "no-cache", "etag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=SAFE | headers)
        return _sent(bundle, path, request, headers)


def _sent(bundle: PageBundle, path: str, request: Request, headers: Mapping[str, str]) -> Response:
    file = bundle.files.get(path)
    if file is None:
        raise RequestRefused("not_found", f"the page has no file {path[:200]!r}")
    headers = {**SAFE, **headers, "content-type": file.media_type}
    if path == PREVIEW:
        headers |= {"content-security-policy": preview_policy(file.content), "x-dns-prefetch-control": "off"}
    if file.packed is None or not _takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.content, headers=headers)
    return Response(file.packed, headers={**headers, "content-encoding": "gzip"})


def _takes_gzip(accepted: str) -> bool:
    named = [re.sub(r"\s", "", one.lower()) for one in accepted.split(",")]
    return any(re.fullmatch(r"(gzip|\*)(;q=(1|0\.[0-9]*[1-9])[0-9.]*)?", one) for one in named)


# One stream for all that a browser shows.

ID_PATTERN = r"^[A-Za-z0-9_-]{16,64}$"
StreamId = Annotated[str, Query(alias="id", pattern=ID_PATTERN)]
StreamPath = Annotated[str, Path(pattern=ID_PATTERN)]
EventId = Annotated[str | None, Query(max_length=64)]


def add_stream_routes(routes: APIRouter) -> None:
    """GET /stream and POST /stream/{stream_id}."""

    @routes.get("/stream")
    @open_to(Access.USERS)
    async def follow(
        request: Request,
        caller: Caller,
        stream_id: StreamId,
        last_event_id: EventId = None,
        header: Annotated[str | None, Header(alias="last-event-id")] = None,
    ) -> Response:
        """The content of the stream of that id, as set by POST /stream/{stream_id}; one connection at a time."""
        may_hear = partial(api().still_knows, principal_of(request))
        stream = api().streams.open(stream_id, caller)
        last_seen = number_after(last_event_id or header, api().instance)
        hello = {
            "stream_id": stream_id,
            "instance": api().instance,
            "version": api().version,
            "page": await _page(),
            "user_id": caller.name,
            "owner": caller.is_owner,
        }
        return EventStream(stream.chunks(last_seen, hello, api().keep_alive_seconds, may_hear))

    @routes.post("/stream/{stream_id}", openapi_extra=takes(StreamBody))
    @open_to(Access.USERS)
    async def carry(stream_id: StreamPath, request: Request, caller: Caller) -> Response:
        """Set the content of a stream, before it is opened or while it is."""
        body = await read_body(request, StreamBody)
        stream = api().streams.open(stream_id, caller)
        await api().streams.carry(stream, body)
        return JsonResponse({"stream_id": stream_id, **stream.carried()})


async def _page() -> str | None:
    try:
        return (await api().page.newest()).digest
    except RequestRefused:
        return None


def add_routes(routes: APIRouter) -> None:
    """Add the routes of the API itself, which belong to no capability."""
    for add in (
        add_health_routes,
        add_control_routes,
        add_sign_in_routes,
        add_stream_routes,
        add_bus_routes,
        add_openai_routes,
        add_page_routes,
    ):
        add(routes)
