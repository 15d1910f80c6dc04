"""The bus, live."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.bus_stream import checked_filters
from local.apps.api.context import api
from local.apps.api.event_stream import EventStream
from local.apps.api.principals import Caller, principal_of


def add_routes(routes: APIRouter) -> None:
    """GET /events."""

    @routes.get("/events")
    @open_to(Access.USERS)
    async def events(
        request: Request,
        caller: Caller,
        subject: Annotated[list[str] | None, Query()] = None,
        payload: Literal["full", "none"] = "full",
    ) -> Response:
        """Every envelope on the subjects given ("response.generation", the family "tool.result."; none is everything).

        Users hear what is theirs, the owner hears everything; with `payload=none` they are told headers and sizes. An
        event `lost` says how many a slow client has missed.
        """
        filters = checked_filters(subject or [""], "subject")
        user, users = principal_of(request).user_id, api().users

        def may_hear() -> bool:
            return user is None or users.knows(user)

        return EventStream(api().bus_streams.chunks(filters, caller.user_id, may_hear, with_payload=payload == "full"))
