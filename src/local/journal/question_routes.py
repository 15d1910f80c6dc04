"""The HTTP route of past questions: how each was answered, by which model, how long it took and how it was judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from local.api.context import api
from local.api.http import ID_PATTERN, JsonResponse
from local.api.security import Access, Caller, open_to
from local.bus.message import MAIN_RESPONDENT
from local.bus.messages import QueryFailed, QueryReceived, ResponseGeneration
from local.journal.messages import JournalRead
from local.queries.record import RecordedMessage

END = 2**62  # a number behind all messages
PIECE = 50  # messages that are read at a time
MOST_LOOKED_AT = 2_000  # for one page: what is wanted may be rare
SHOWN = 300  # characters of a question
SLOW_SECONDS = 30.0
POOR_GRADE = 2

Only = Literal["all", "failed", "slow", "poor"]
Line = dict[str, Any]


def add_routes(routes: APIRouter) -> None:
    """GET /questions."""
    routes.add_api_route("/questions", _listing, methods=["GET"])


@open_to(Access.USERS)
async def _listing(
    caller: Caller,
    only: Only = "all",
    session: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
    model: Annotated[str, Query(max_length=500)] = "",
    tool: Annotated[str, Query(max_length=64)] = "",
    before: Annotated[int | None, Query(ge=1, lt=END)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Response:
    """List past questions, the latest first: with `only` those that `failed`, took 30 seconds or more (`slow`), or were
    graded 1 or 2 or rated as bad (`poor`); with `model` or `tool` those in which it was used. `before` in the answer is
    the cursor of the next page; a page with a cursor may be empty. Incognito conversations are not listed.
    """
    lines, looked_at, last = list[Line](), 0, before
    request = JournalRead(
        subjects=(ResponseGeneration.subject, QueryFailed.subject),
        session_id=session,
        before=before or END,
        limit=PIECE,
    )
    found = list[Line]()
    async for message in api().session.entries(request):
        if len(lines) + len(found) >= limit:
            lines += await _judged(found, only)
            found = []
        if len(lines) >= limit or looked_at >= MOST_LOOKED_AT:
            break
        looked_at, last = looked_at + 1, message.entry.number
        line = await _line_of(message) if caller.sees(message.envelope.user_id) else None
        if line is not None and _is_wanted(line, only, model, tool):
            found.append(line)
    else:
        last = None
    return JsonResponse({"questions": [*lines, *await _judged(found, only)], "before": last})


async def _line_of(message: RecordedMessage) -> Line | None:
    """The line of a question by how it ended; None for another respondent's answer, an agent's and a deleted one."""
    envelope = message.envelope
    payload = await api().session.payload(message)
    if not payload or payload.get("respondent_id", MAIN_RESPONDENT) != MAIN_RESPONDENT:
        return None
    if payload.get("agent") or payload.get("incognito"):
        return None
    at, query_id = message.entry.committed_at, payload["query_id"]
    line: Line = {
        "number": message.entry.number, "at": at, "query_id": query_id, "session_id": envelope.session_id,
        "query": "", "status": "failed", "error": payload.get("error"), "model": payload.get("model", ""),
        "model_calls": 0, "tools": [], "seconds": None,
    }  # fmt: skip
    if envelope.subject == QueryFailed.subject:
        return await _without_answer(line)
    steps = (payload.get("usage") or {}).get("steps") or []
    return line | {
        "query": payload["query"][:SHOWN],
        "status": payload["status"],
        "model_calls": len(steps),
        "tools": list(dict.fromkeys(call["tool"] for call in payload.get("tool_calls") or ())),
        "seconds": at - steps[0]["started"] if steps else None,
    }


async def _without_answer(line: Line) -> Line | None:
    """The line of a query that ended before the model was asked, with its question; None where that was incognito."""
    request = JournalRead(subjects=(QueryReceived.subject,), correlation_id=line["query_id"], limit=1)
    async for message in api().session.entries(request):
        asked = await api().session.payload(message)
        if not asked or asked.get("incognito") or asked.get("task"):
            return None
        status = "cancelled" if (line["error"] or {}).get("kind") == "cancelled" else "failed"
        return line | {"query": asked["query"][:SHOWN], "status": status}
    return None


def _is_wanted(line: Mapping[str, Any], only: Only, model: str, tool: str) -> bool:
    if (model and line["model"] != model) or (tool and tool not in line["tools"]):
        return False
    if only == "failed":
        return bool(line["status"] == "failed")
    return only != "slow" or (line["seconds"] or 0.0) >= SLOW_SECONDS


async def _judged(lines: list[Line], only: Only) -> list[Line]:
    """The lines with grade and rating; where only `poor` answers are wanted, those alone."""
    scores = await api().session.scores([line["query_id"] for line in lines])
    return list(_with_scores(lines, scores, only))


def _with_scores(lines: list[Line], scores: Mapping[str, Any], only: Only) -> Iterator[Line]:
    for line in lines:
        told = scores.get(line["query_id"], {})
        score, rating = (told.get("critique") or {}).get("score"), told.get("rating")
        if only != "poor" or rating == -1 or (score is not None and score <= POOR_GRADE):
            yield line | {"score": score, "rating": rating}
