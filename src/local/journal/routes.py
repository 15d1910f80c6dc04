"""The HTTP routes of the journal: recorded messages, the latest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from local.api.bus_stream import checked_filters
from local.api.context import api
from local.api.http import ID_PATTERN, JsonResponse
from local.api.security import Access, Caller, open_to
from local.journal.messages import JournalRead
from local.queries.errors import QueryRefused

END = 2**62  # a number behind all messages
PIECE = 50  # messages that are read at a time
MOST_LOOKED_AT = 5_000  # for one page: a user's own may be few among those of others

Identifier = Annotated[str | None, Query(pattern=ID_PATTERN)]
Number = Annotated[int | None, Query(ge=0, lt=END)]


def add_routes(routes: APIRouter) -> None:
    """The routes under /journal."""
    journal = _Journal()
    routes.add_api_route("/journal", journal.listing, methods=["GET"])
    routes.add_api_route("/journal/{number}", journal.show, methods=["GET"])


class _Journal:
    @open_to(Access.USERS)
    async def listing(
        self,
        caller: Caller,
        after: Number = None,
        before: Number = None,
        subject: Annotated[list[str] | None, Query()] = None,
        session: Identifier = None,
        query: Identifier = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> Response:
        """List the headers of recorded messages, the latest first, or with `after` the oldest first. Users see their
        own, the owner sees all. `after` and `before` in the answer are the cursors of the next pages.
        """
        request = JournalRead(
            subjects=checked_filters(subject, "subject") if subject else (),
            correlation_id=query,
            session_id=session,
            after=after or 0,
            before=END if before is None and not after else before,
            limit=PIECE,
        )
        entries, numbers = list[dict[str, object]](), list[int]()
        is_all = True
        async for message in api().session.entries(request):
            if len(entries) >= limit or len(numbers) >= MOST_LOOKED_AT:
                is_all = False
                break
            numbers.append(message.entry.number)
            if caller.sees(message.envelope.user_id):
                entries.append(message.as_json())
        first, last = (min(numbers), max(numbers)) if numbers else (None, after)
        earlier = None if request.is_backwards and is_all else first
        return JsonResponse({"entries": entries, "after": last, "before": earlier})

    @open_to(Access.USERS)
    async def show(self, number: Annotated[int, Path(ge=1, lt=END)], caller: Caller) -> Response:
        """Get one recorded message with its payload; the payload is null if it was removed."""
        request = JournalRead(after=number - 1, before=number + 1, limit=1)
        async for message in api().session.entries(request):
            if caller.sees(message.envelope.user_id):
                return JsonResponse({**message.as_json(), "payload": await api().session.payload(message)})
        raise QueryRefused("not_found", f"message {number} is not in the journal")
