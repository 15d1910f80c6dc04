"""The bus, live."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from local.apps.api.bus_stream import is_filter
from local.apps.api.context import ApiContext
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import EventStream

MAX_FILTERS = 32


def add_routes(routes: APIRouter, context: ApiContext) -> None:
    """GET /events."""

    @routes.get("/events")
    async def events(subject: Annotated[list[str] | None, Query()] = None) -> Response:
        """Every envelope on the subjects given ("response.generation", the family "tool.result."; none is everything).

        An event `lost` says how many a slow client has missed.
        """
        filters = subject or [""]
        if len(filters) > MAX_FILTERS:
            raise RequestRefused("invalid", f"subject: at most {MAX_FILTERS} can be given", "subject")
        for one in filters:
            if not is_filter(one):
                text = f"subject: {one[:200]!r} is neither a subject nor a family, which ends in a dot"
                raise RequestRefused("invalid", text, "subject")
        return EventStream(context.bus_streams.chunks(filters))
