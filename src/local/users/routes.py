"""HTTP routes of accounts: usage, activity with approvals, and logs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from local.api.budgets import Act
from local.api.context import api
from local.api.http import ID_PATTERN, Id, JsonResponse, PathId, read_body, takes
from local.api.security import Access, Caller, open_to
from local.bus.messages import ToolRequest

NDJSON = "application/x-ndjson"
MOST_LOOKED_AT = 20_000  # messages for one page: a user's own may be few among those of others

By = Literal["day", "user", "agent", "session", "model", "server", "job"]
Kind = Literal["query", "call", "approval", "undo", "job", "run", "goal", "deletion"]
Level = Literal["debug", "info", "warning", "error"]
Form = Literal["json", "ndjson"]
Day = Annotated[str, Query(pattern=r"^\d{4}-\d\d-\d\d$")]
Since = Annotated[float, Query(ge=0)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Identifier = Annotated[str | None, Query(pattern=ID_PATTERN)]
Number = Annotated[int | None, Query(ge=1, lt=2**62)]


def add_account_routes(routes: APIRouter) -> None:
    """The routes /usage, /activity and /logs."""
    routes.add_api_route("/usage", _usage, methods=["GET"])
    routes.add_api_route("/activity", _activity, methods=["GET"])
    routes.add_api_route("/logs", _logs, methods=["GET"])


@open_to(Access.USERS)
async def _usage(
    caller: Caller,
    by: Annotated[tuple[By, ...], Query()] = ("day",),
    since: Day = "0001-01-01",
    until: Day = "9999-12-31",
) -> Response:
    """Answers, model calls, tokens, seconds and money: users see their own, the owner sees everybody's."""
    ledger = await api().accounts.ledger(by, caller.user_id, since, until)
    entries, prices = list(ledger.entries(None)), await asyncio.to_thread(api().accounts.prices)
    total, budgets = ledger.rows((), entries, prices), await api().budgets.of(caller.user_id)
    return JsonResponse({
        "by": by,
        "rows": ledger.rows(by, entries, prices),
        "total": total[0] if total else None,
        "budgets": [each._asdict() for each in budgets if each.of != "all" or caller.is_owner],
    })  # fmt: skip


@open_to(Access.USERS)
async def _activity(
    caller: Caller,
    kind: Annotated[tuple[Kind, ...], Query()] = (),
    session: Identifier = None,
    participant: Identifier = None,
    since: Since = 0.0,
    before: Number = None,
    limit: Limit = 100,
    format: Form = "json",
) -> Response:
    """Who did what with whose approval, the latest first; as NDJSON all of it. With `participant` what it did, and the
    calls of the tool of that name."""
    acts = api().accounts.activity(frozenset(kind), session, since, before)
    if format == "ndjson":
        return StreamingResponse(_lines_of(caller, acts, participant), media_type=NDJSON)
    lines, last, looked_at = list[dict[str, Any]](), None, 0
    async for act in acts:
        looked_at += 1
        if len(lines) >= limit or looked_at > MOST_LOOKED_AT:
            return JsonResponse({"activity": lines, "before": last})
        last = act.number
        if caller.sees(act.envelope.user_id) and _is_of(act, participant):
            lines.append(act.line)
    return JsonResponse({"activity": lines, "before": None})


async def _lines_of(caller: Caller, acts: AsyncIterator[Act], participant: str | None) -> AsyncIterator[str]:
    async for act in acts:
        if caller.sees(act.envelope.user_id) and _is_of(act, participant):
            yield f"{json.dumps(act.line)}\n"


def _is_of(act: Act, participant: str | None) -> bool:
    """Whether a participant did that, or a tool of its name was called; always for None."""
    named = (act.envelope.sender, act.line["by"], act.envelope.subject.removeprefix(ToolRequest.subject))
    return participant is None or participant in named


@open_to(Access.OWNER)
async def _logs(
    participant: Annotated[tuple[str, ...], Query()] = (),
    level: Level = "debug",
    query: Annotated[str, Query(max_length=128)] = "",
    since: Since = 0.0,
    limit: Limit = 200,
    format: Form = "json",
) -> Response:
    """The last lines of the log, the oldest first."""
    found = await asyncio.to_thread(api().accounts.logged, participant, level, since, query, limit)
    if format == "ndjson":
        return Response("".join(f"{json.dumps(line)}\n" for line in found), media_type=NDJSON)
    return JsonResponse({"lines": found})


# Who may use this system besides its owner.

ONCE = {"cache-control": "no-store"}


class UserBody(BaseModel):
    """The body of POST /users; `again` gives a removed user's name, and what is stored under it, to the same person."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Id
    again: bool = False


def add_user_routes(routes: APIRouter) -> None:
    """The routes under /users. A program that runs as the owner's Unix user is not the owner here."""

    @routes.get("/users")
    @open_to(Access.TOKEN)
    async def listing() -> Response:
        """Every user, without the tokens."""
        known = await asyncio.to_thread(api().users.all)
        return JsonResponse({"users": [{"name": name, "added_at": user.added_at} for name, user in known.items()]})

    @routes.post("/users", openapi_extra=takes(UserBody))
    @open_to(Access.TOKEN)
    async def add(request: Request) -> Response:
        """Give a user a token, which is shown only now, and the `code` of an invitation: a link to the page that ends
        with `#code=` and the code signs one browser in, once, within a week."""
        body = await read_body(request, UserBody)
        token = await asyncio.to_thread(partial(api().users.add, body.name, again=body.again))
        code = await asyncio.to_thread(api().users.invite, body.name)
        return JsonResponse({"name": body.name, "token": token, "code": code}, 201, ONCE)

    @routes.post("/users/{name}/invite")
    @open_to(Access.TOKEN)
    async def invite(name: PathId) -> Response:
        """Give a user a new invitation, for a further browser; an unused earlier one ends."""
        return JsonResponse({"name": name, "code": await asyncio.to_thread(api().users.invite, name)}, 201, ONCE)

    @routes.delete("/users/{name}")
    @open_to(Access.TOKEN)
    async def remove(name: PathId) -> Response:
        """Withdraw a user's token. What the user has asked stays."""
        await asyncio.to_thread(api().users.remove, name)
        return JsonResponse({"name": name, "removed": True})
