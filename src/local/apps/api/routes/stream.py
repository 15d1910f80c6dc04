"""One stream for all that a browser shows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import EventStream
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.apps.api.principals import Caller, principal_of
from local.apps.api.query_stream import number_after
from local.apps.api.stream_body import StreamBody

ID_PATTERN = r"^[A-Za-z0-9_-]{16,64}$"
StreamId = Annotated[str, Query(alias="id", pattern=ID_PATTERN)]
StreamPath = Annotated[str, Path(pattern=ID_PATTERN)]
EventId = Annotated[str | None, Query(max_length=64)]


def add_routes(routes: APIRouter) -> None:
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
        """What the stream of that id carries, which POST /stream/{stream_id} says; one connection at a time."""
        user, users = principal_of(request).user_id, api().users

        def may_hear() -> bool:
            return user is None or users.knows(user)

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
        """Say what a stream is to carry, before it is opened or while it is."""
        body = await read_body(request, StreamBody)
        stream = api().streams.open(stream_id, caller)
        await api().streams.carry(stream, body)
        return JsonResponse({"stream_id": stream_id, **stream.carried()})


async def _page() -> str | None:
    try:
        return (await api().page.newest()).digest
    except RequestRefused:
        return None
