"""The bus, live."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.bus_stream import is_filter
from local.apps.api.context import ApiContext
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import EventStream
from local.apps.api.principals import Caller, principal_of

MAX_FILTERS = 32


def add_routes(routes: APIRouter, context: ApiContext) -> None:
    """GET /events."""

    @routes.get("/events")
    @open_to(Access.USERS)
    async def events(
        request: Request, caller: Caller, subject: Annotated[list[str] | None, Query()] = None
    ) -> Response:
        """Every envelope on the subjects given ("response.generation", the family "tool.result."; none is everything).

        Users hear what is theirs, the owner hears everything. An event `lost` says how many a slow client has missed.
        """
        filters = subject or [""]
        if len(filters) > MAX_FILTERS:
            raise RequestRefused("invalid", f"subject: at most {MAX_FILTERS} can be given", "subject")
        for one in filters:
            if not is_filter(one):
                text = f"subject: {one[:200]!r} is neither a subject nor a family, which ends in a dot"
                raise RequestRefused("invalid", text, "subject")
        user = principal_of(request).user_id

        def may_hear() -> bool:
            return user is None or context.users.knows(user)

        return EventStream(context.bus_streams.chunks(filters, caller.user_id, may_hear))
