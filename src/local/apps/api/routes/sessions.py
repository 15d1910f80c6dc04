"""Conversations, as the generator has them on record."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import ID_PATTERN, Id, PathId, api
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import Download
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.apps.api.principals import Caller
from local.apps.api.session_export import as_json, as_markdown, file_name
from local.apps.api.turn_listing import TurnListing
from local.protocol.envelope import new_id

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


class LabelsBody(BaseModel):
    """The body of PATCH /sessions/{session_id}; a title of null gives the session that of its first query back."""

    model_config = ConfigDict(extra="forbid", strict=True)
    title: Title | None = None
    pinned: bool = False


class BranchBody(BaseModel):
    """The body of POST /sessions/{session_id}/branch. Without a session_id the branch gets a fresh one."""

    model_config = ConfigDict(extra="forbid", strict=True)
    before: Id
    session_id: Id | None = None


def add_routes(routes: APIRouter) -> None:
    """The routes under /sessions."""
    sessions = _Sessions()
    one = "/sessions/{session_id}"
    routes.add_api_route("/sessions", sessions.listing, methods=["GET"])
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
    async def listing(self, caller: Caller, query: Words = "", cursor: Cursor = "", limit: Limit = 1000) -> Response:
        """A page of the sessions, the pinned ones and then the most recent first; with `query` those in whose title, or
        in one of whose questions with its answer, all of these words are."""
        fields = {"query": query, "cursor": cursor, "limit": limit}
        return JsonResponse(await api().session.look_up("sessions", caller.user_id or "", SEARCH_SECONDS, **fields))

    @open_to(Access.USERS)
    async def show(self, session_id: PathId, caller: Caller) -> Response:
        """One session: its last turns, its branches, and the messages as the model gets them."""
        return JsonResponse(await api().session.look_up("session", session_id, of_user=caller.user_id))

    @open_to(Access.USERS)
    async def turns(
        self, session_id: PathId, caller: Caller, before: Place = None, after: Place = None, around: Place = None,
        limit: TurnLimit = 50,
    ) -> Response:  # fmt: skip
        """The last turns with everything that is known of them, the oldest first; or those before or after a query, or
        around it. `before` and `after` of the answer are where the next page begins, null where there is none."""
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
        """Where a text stands in a session, whatever its case."""
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
        """Give a session a title, or pin it; it is told as it is listed then."""
        labels = (await read_body(request, LabelsBody)).model_dump(exclude_unset=True)
        if not labels:
            raise RequestRefused("invalid", "nothing is to be changed; expected title or pinned")
        fields: dict[str, Any] = {"labels": labels, "of_user": caller.user_id}
        return JsonResponse(await api().session.look_up("change", session_id, CHANGE_SECONDS, **fields))

    @open_to(Access.USERS)
    async def branch(self, session_id: PathId, request: Request, caller: Caller) -> Response:
        """Go on from an earlier place: a new session that begins with the turns before a query."""
        wanted = await read_body(request, BranchBody)
        fields = {"before": wanted.before, "branch_id": wanted.session_id or new_id(), "of_user": caller.user_id}
        return JsonResponse(await api().session.look_up("branch", session_id, CHANGE_SECONDS, **fields), 201)

    @open_to(Access.USERS)
    async def delete(self, session_id: PathId, caller: Caller) -> Response:
        """Remove a session for good; not while one of its queries is open. What is remembered elsewhere may repeat it,
        and branches keep their copies: the ids are told, of memories null where no memory takes part."""
        repeated_in = await api().memories.repeated_in(session_id)  # known for as long as the session is
        deleted = await api().session.delete(session_id, caller.user_id)
        return JsonResponse({**deleted, "repeated_in": repeated_in})
