"""The HTTP routes of the journal: recorded messages, the latest first."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from local.api.bus_stream import read_filter
from local.api.context import api
from local.api.http import ID_PATTERN, Id, JsonResponse, RequestRefused, read_body, takes
from local.api.security import Access, Caller, open_to
from local.bus.filter import MAX_TEXT, Filter
from local.journal.messages import (
    JournalDeadLetters,
    JournalDeadRead,
    JournalRead,
    JournalRedeliver,
    JournalRedelivered,
)
from local.queries.asker import JOURNAL
from local.queries.errors import QueryRefused
from local.queries.record import RecordedMessage

END = 2**62  # a number behind all messages
PIECE = 50  # messages that are read at a time
MOST_LOOKED_AT = 5_000  # for one page: a user's own may be few among those of others
MOST_PAYLOADS = 100  # in one page

FilterText = Annotated[str | None, Query(max_length=MAX_TEXT)]
Identifier = Annotated[str | None, Query(pattern=ID_PATTERN)]
Number = Annotated[int | None, Query(ge=0, lt=END)]
Moment = Annotated[float | None, Query(ge=0, lt=2**40)]  # seconds since 1970


class RedeliverBody(BaseModel):
    """The body of POST /journal/redeliver: which dead letters, or with `consumer` alone all of that consumer's."""

    model_config = ConfigDict(extra="forbid", strict=True)
    numbers: Annotated[tuple[Annotated[int, Field(ge=1, lt=END)], ...], Field(max_length=1000, strict=False)] = ()
    consumer: Id | None = None


def add_routes(routes: APIRouter) -> None:
    """The routes under /journal."""
    journal = _Journal()
    routes.add_api_route("/journal", journal.listing, methods=["GET"])
    routes.add_api_route("/journal/span", journal.span, methods=["GET"])
    routes.add_api_route("/journal/export", journal.export, methods=["GET"])
    routes.add_api_route("/journal/dead", journal.dead, methods=["GET"])
    routes.add_api_route("/journal/redeliver", journal.redeliver, methods=["POST"], openapi_extra=takes(RedeliverBody))
    routes.add_api_route("/journal/{number}", journal.show, methods=["GET"])


class _Journal:
    @open_to(Access.USERS)
    async def listing(
        self,
        caller: Caller,
        after: Number = None,
        before: Number = None,
        filter: FilterText = None,
        subject: Annotated[list[str] | None, Query()] = None,
        session: Identifier = None,
        query: Identifier = None,
        participant: Identifier = None,
        until: Moment = None,
        payloads: bool = False,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> Response:
        """List the headers of recorded messages, the latest first, or with `after` the oldest first; with `payloads`
        the payloads too, of at most 100. `filter` is as in GET /events, and `subject`, `session`, `query` and
        `participant` narrow it down; with `until` what was recorded before that time. Users see their own, the owner
        sees all. `after` and `before` in the answer are the cursors of the next pages; a page with a cursor may be
        empty.
        """
        if until is not None:
            number = await _first_from(until)
            before = number if before is None else min(before, number)
        limit = min(limit, MOST_PAYLOADS) if payloads else limit
        wanted = _wanted(filter, subject, session=session, query=query, participant=participant)
        request = _request(wanted, after=after or 0, before=END if before is None and not after else before)
        entries, numbers = list[dict[str, object]](), list[int]()
        is_all = True
        async for message in api().session.entries(request):
            if len(entries) >= limit or len(numbers) >= MOST_LOOKED_AT:
                is_all = False
                break
            numbers.append(message.entry.number)
            if caller.sees(message.envelope.user_id) and wanted.matches(message.envelope):
                more = {"payload": await api().session.payload(message)} if payloads else {}
                entries.append({**message.as_json(), **more})
        first, last = (min(numbers), max(numbers)) if numbers else (None, after)
        earlier = None if request.is_backwards and is_all else first
        return JsonResponse({"entries": entries, "after": last, "before": earlier})

    @open_to(Access.OWNER)
    async def span(self) -> Response:
        """The times of the first and of the last recorded message, in seconds since 1970; null if there is none."""
        first, last = await _one(JournalRead(after=0, limit=1)), await _one(JournalRead(before=END, limit=1))
        return JsonResponse({
            "first_at": first and first.entry.committed_at,
            "last_at": last and last.entry.committed_at,
            "number": last.entry.number if last else 0,
        })  # fmt: skip

    @open_to(Access.OWNER)
    async def export(
        self,
        filter: FilterText = None,
        subject: Annotated[list[str] | None, Query()] = None,
        session: Identifier = None,
        participant: Identifier = None,
        until: Moment = None,
    ) -> Response:
        """Export recorded messages with their payloads as NDJSON, the oldest first, in the form that
        `local2 journal export` writes and `local2 journal play` reads."""
        wanted = _wanted(filter, subject, session=session, participant=participant)
        return StreamingResponse(_exported(wanted, until), media_type="application/x-ndjson")

    @open_to(Access.OWNER)
    async def dead(self) -> Response:
        """List the dead letters, the latest 200 first: messages that a consumer could not handle. `count` is how many
        there are."""
        found = await api().requests.ask(JOURNAL, JournalDeadRead(), JournalDeadLetters)
        return JsonResponse({"dead_letters": found.dead_letters, "count": found.count})

    @open_to(Access.TOKEN)
    async def redeliver(self, request: Request) -> Response:
        """Deliver dead letters again, after the cause of the failure was repaired; the numbers by consumer."""
        body = await read_body(request, RedeliverBody)
        if not body.numbers and body.consumer is None:
            raise RequestRefused("invalid", "name the numbers of dead letters, or a consumer for all of its", "numbers")
        order = JournalRedeliver(consumer=body.consumer, numbers=body.numbers)
        found = await api().requests.ask(JOURNAL, order, JournalRedelivered)
        return JsonResponse({"redelivered": found.numbers})

    @open_to(Access.USERS)
    async def show(self, number: Annotated[int, Path(ge=1, lt=END)], caller: Caller) -> Response:
        """Get one recorded message with its payload; the payload is null if it was removed."""
        request = JournalRead(after=number - 1, before=number + 1, limit=1)
        async for message in api().session.entries(request):
            if caller.sees(message.envelope.user_id):
                return JsonResponse({**message.as_json(), "payload": await api().session.payload(message)})
        raise QueryRefused("not_found", f"message {number} is not in the journal")


def _wanted(text: str | None, subjects: list[str] | None, **exact: str | None) -> Filter:
    """The filter of a request: its text, and the parameters that narrow it down. Raises `RequestRefused`."""
    wanted = read_filter(text, subjects)
    for name, value in exact.items():
        if value is not None:
            wanted &= Filter.of(name, [value], "=")
    return wanted


def _request(wanted: Filter, after: int = 0, before: int | None = None) -> JournalRead:
    """The narrowest request for everything that matches."""
    return JournalRead(
        subjects=tuple(subject for subject in wanted.subscriptions() if subject),
        correlation_id=wanted.exact("query"),
        session_id=wanted.exact("session"),
        after=after,
        before=before,
        limit=PIECE,
    )


async def _exported(wanted: Filter, until: float | None) -> AsyncIterator[str]:
    async for message in api().session.entries(_request(wanted)):
        if until is not None and message.entry.committed_at >= until:
            return
        if wanted.matches(message.envelope):
            line = {
                "number": message.entry.number,
                "committed_at": message.entry.committed_at,
                "redacted": message.entry.redacted,
                "subject": message.envelope.subject,
                "header": message.envelope.header(),
                "payload": await api().session.payload(message),
            }
            yield f"{json.dumps(line)}\n"


async def _one(request: JournalRead) -> RecordedMessage | None:
    async for message in api().session.entries(request):
        return message
    return None


async def _first_from(until: float) -> int:
    """The number of the first message that was recorded at that time or later: numbers and times rise together."""
    last = await _one(JournalRead(before=END, limit=1))
    low, high = 1, last.entry.number + 1 if last else 1
    while low < high:
        middle = (low + high) // 2
        found = await _one(JournalRead(after=middle - 1, limit=1))
        if found is None or found.entry.committed_at >= until:
            high = middle
        else:
            low = found.entry.number + 1
    return low
