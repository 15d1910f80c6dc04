"""HTTP routes of the memory: search, show, pin, delete and export."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import Chunks, Download, JsonResponse, PathId, RequestRefused, read_body, takes
from local.api.security import Access, Caller, open_to
from local.memory.memory_file import memory_file, read_memory_file
from local.memory.messages import (
    EditRecord,
    EngramRecord,
    EntryRecord,
    MemoryRequest,
    MemoryResult,
    MemoryVerb,
    OnlySome,
    OutcomeRecord,
)

MAX_QUERY = 2_000
MOST_FILE = 1_000_000  # characters of MEMORY.md
MOST_EDITS = 2_000  # in it, at once
ANSWER_SECONDS = 20.0  # longer than the memory waits for the journal, so that its reason arrives
EXPORT_PAGE = 50
EDITS_AT_ONCE, EDITED_BYTES = 15, 40_000  # of one request, which has to fit into a frame
END_OF_TIME = 1e11  # seconds since 1970

Question = Annotated[str, Query(max_length=MAX_QUERY)]
Limit = Annotated[int, Query(ge=1, le=100)]
FactId = Annotated[int, Path(ge=1, le=2**62)]
Cursor = Annotated[str, Query(max_length=200)]
Before = Annotated[float | None, Query(ge=0, le=END_OF_TIME, allow_inf_nan=False)]


class MemoryFileBody(BaseModel):
    """The body of POST /memory/file: the whole text, and whether its changes are to be applied."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, StringConstraints(max_length=MOST_FILE)]
    apply: bool = False


def _day(text: str) -> str:
    if text and date.fromisoformat(text).isoformat() != text:
        raise ValueError("is no day; expected one such as 2026-11-27, or nothing")
    return text


def _slot(text: str) -> str:
    if ": " in text:
        raise ValueError("has a colon in it; expected a name, such as “how I take my coffee”")
    return text


Day = Annotated[str, StringConstraints(max_length=10), AfterValidator(_day)]
Slot = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_slot)]


class FactBody(BaseModel):
    """The body of POST /memory/facts and PUT /memory/facts/{fact_id}: what the fact is about, its value, and from and
    until which days it holds, as 2026-11-27. Without `value` the fact ends.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    slot: Slot
    value: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)]
    holds_from: Day = ""
    holds_until: Day = ""


def add_routes(routes: APIRouter) -> None:
    """The routes under /memory. Those of one engram come last: their path matches every name."""
    memory = _Memory()
    routes.add_api_route("/memory", memory.listing, methods=["GET"])
    routes.add_api_route("/memory/facts", memory.facts, methods=["GET"])
    routes.add_api_route("/memory/facts/{fact_id}/confirm", memory.confirm_fact, methods=["POST"])
    routes.add_api_route("/memory/facts", memory.add_fact, methods=["POST"], openapi_extra=takes(FactBody))
    routes.add_api_route("/memory/facts/{fact_id}", memory.correct_fact, methods=["PUT"], openapi_extra=takes(FactBody))
    routes.add_api_route("/memory/facts/{fact_id}", memory.drop_fact, methods=["DELETE"])
    routes.add_api_route("/memory/notes", memory.notes, methods=["GET"])
    routes.add_api_route("/memory/export", memory.export, methods=["GET"])
    routes.add_api_route("/memory/file", memory.file, methods=["GET"])
    routes.add_api_route("/memory/file", memory.read_back, methods=["POST"], openapi_extra=takes(MemoryFileBody))
    routes.add_api_route("/memory/{engram_id}", memory.show, methods=["GET"])
    routes.add_api_route("/memory/{engram_id}/repeated", memory.repeated, methods=["GET"])
    routes.add_api_route("/memory/{engram_id}", memory.delete, methods=["DELETE"])
    routes.add_api_route("/memory/{engram_id}/pin", memory.pin, methods=["POST"])
    routes.add_api_route("/memory/{engram_id}/pin", memory.unpin, methods=["DELETE"])
    routes.add_api_route("/memory/{engram_id}/restore", memory.restore, methods=["POST"])


class _Memory:
    @open_to(Access.USERS)
    async def listing(
        self,
        caller: Caller,
        query: Question = "",
        limit: Limit = 10,
        cursor: Cursor = "",
        before: Before = None,
        only: OnlySome | None = None,
    ) -> Response:
        """With `query`, what has to do with it, best first; without, the latest exchanges: those after the page that
        gave the `cursor`, or those asked `before`; with `only` those that are pinned, rated by the user, poor (graded 1
        or 2, or rated bad), or have untrusted content."""
        if not query.strip():
            page = await _ask("list", caller.name, limit=limit, cursor=cursor, before=before, only=only)
            paging = {"cursor": page.cursor or None, "more_before": page.more_before}
            return JsonResponse({"engrams": _aged(page.engrams), **paging})
        for name, given in (("before", before is not None), ("cursor", cursor), ("only", only)):
            if given:
                raise RequestRefused(
                    "invalid", f"{name}: belongs to a list, not to a search; leave it out, or leave out the query", name
                )
        found = await _ask("search", caller.name, query=query, limit=limit)
        return JsonResponse({"hits": _aged(found.hits), "degraded": found.degraded})

    @open_to(Access.USERS)
    async def show(self, engram_id: PathId, caller: Caller) -> Response:
        """One engram, with the facts stated in it and its later changes."""
        engram, result = await _engram("get", caller.name, engram_id)
        return JsonResponse({"engram": _aged([engram])[0], "facts": result.facts, "changes": result.changes})

    @open_to(Access.USERS)
    async def repeated(self, engram_id: PathId, caller: Caller) -> Response:
        """The engrams of the answers that are based on this one, and may repeat it after it is deleted."""
        result = await _ask("repeated", caller.name, engram_id=engram_id)
        return JsonResponse({"engram_id": engram_id, "repeated_in": result.repeated_in})

    @open_to(Access.USERS)
    async def delete(self, engram_id: PathId, caller: Caller) -> Response:
        """Delete an engram permanently, and its exchange. Others may repeat it: their ids are returned."""
        engram, result = await _engram("delete", caller.name, engram_id)
        api().session.forget(engram_id, engram.query_id)
        told = {"engram_id": engram_id, "query_id": engram.query_id, "deleted": True}
        return JsonResponse({**told, "repeated_in": result.repeated_in})

    @open_to(Access.USERS)
    async def pin(self, engram_id: PathId, caller: Caller) -> Response:
        """Add the user's words there to every conversation."""
        await _engram("pin", caller.name, engram_id)
        return JsonResponse({"engram_id": engram_id, "pinned": True})

    @open_to(Access.USERS)
    async def unpin(self, engram_id: PathId, caller: Caller) -> Response:
        """Undo that."""
        await _engram("unpin", caller.name, engram_id)
        return JsonResponse({"engram_id": engram_id, "pinned": False})

    @open_to(Access.USERS)
    async def restore(self, engram_id: PathId, caller: Caller) -> Response:
        """Have a note of the assistant's hold again that was replaced or withdrawn."""
        await _engram("restore", caller.name, engram_id)
        return JsonResponse({"engram_id": engram_id, "restored": True})

    @open_to(Access.USERS)
    async def notes(self, caller: Caller, history: bool = False) -> Response:
        """The assistant's current notes, with `history` also the replaced or withdrawn ones, the latest first."""
        result = await _ask("notes", caller.name, history=history or None)
        return JsonResponse({"notes": _aged(result.engrams)})

    @open_to(Access.USERS)
    async def facts(self, caller: Caller, history: bool = False) -> Response:
        """The user's current facts, with `history` also the others; the user's lines in every prompt; the pinned ones
        of them; the pinned engrams without room there; and the facts to be confirmed or dropped, which are in no
        prompt.
        """
        result = await _ask("facts", caller.name, history=history or None)
        shown = {"told": result.lines, "pinned": result.pinned, "left_out": result.left_out}
        return JsonResponse({"facts": result.facts, "unconfirmed": result.unconfirmed, **shown})

    @open_to(Access.USERS)
    async def confirm_fact(self, fact_id: FactId, caller: Caller) -> Response:
        """Have an unconfirmed fact hold."""
        (fact,) = (await _ask("confirm_fact", caller.name, fact_id=fact_id)).facts
        return JsonResponse({"fact": fact, "confirmed": True})

    @open_to(Access.USERS)
    async def drop_fact(self, fact_id: FactId, caller: Caller) -> Response:
        """Remove an unconfirmed fact."""
        (fact,) = (await _ask("drop_fact", caller.name, fact_id=fact_id)).facts
        return JsonResponse({"fact": fact, "dropped": True})

    @open_to(Access.USERS)
    async def add_fact(self, request: Request, caller: Caller) -> Response:
        """Add a fact by hand. Known facts of the same slot hold beside it."""
        return await _write_fact(caller.name, None, await read_body(request, FactBody))

    @open_to(Access.USERS)
    async def correct_fact(self, fact_id: FactId, request: Request, caller: Caller) -> Response:
        """Replace a fact that holds or is unconfirmed; without `value` it ends."""
        return await _write_fact(caller.name, fact_id, await read_body(request, FactBody))

    @open_to(Access.USERS)
    async def export(self, caller: Caller) -> Response:
        """Everything that is kept of a user, one JSON object on each line."""
        return Download(self._lines(caller.name), "memory.ndjson")

    @open_to(Access.USERS)
    async def file(self, caller: Caller) -> Response:
        """The facts and notes as the text of MEMORY.md, to be edited."""
        return JsonResponse({"text": memory_file(await _entries(caller.name))})

    @open_to(Access.USERS)
    async def read_back(self, request: Request, caller: Caller) -> Response:
        """The changes in such a file and their effects, applied if requested."""
        body = await read_body(request, MemoryFileBody)
        reading = read_memory_file(body.text)
        if len(reading.edits) > MOST_EDITS:
            raise RequestRefused("too_large", f"more than {MOST_EDITS} lines are changed; do it in parts", "text")
        outcomes = await _edit(caller.name, reading.edits, applies=body.apply)
        told = [outcome for outcome in outcomes if outcome.what != "nothing"]
        return JsonResponse({"outcomes": told, "problems": reading.problems, "applied": body.apply})

    async def _lines(self, user_id: str) -> Chunks:
        cursor = ""
        while True:
            page = await _ask("export", user_id, cursor=cursor, limit=EXPORT_PAGE)
            yield "".join(f"{line}\n" for line in page.lines).encode()
            cursor = page.cursor
            if not cursor:
                return


def _aged(engrams: Sequence[EngramRecord]) -> list[dict[str, Any]]:
    now = time.time()
    return [{**engram.model_dump(mode="json"), "age_seconds": max(0.0, now - engram.asked_at)} for engram in engrams]


# The requests to the memory on behalf of one user.


async def _ask(verb: MemoryVerb, user_id: str, **fields: Any) -> MemoryResult:
    request = MemoryRequest(verb=verb, **fields)
    return await api().ask("memory", request, MemoryResult, user_id=user_id, seconds=ANSWER_SECONDS)


async def _engram(verb: MemoryVerb, user_id: str, engram_id: str) -> tuple[EngramRecord, MemoryResult]:
    """An engram after get, pin or unpin, or as it was before delete; and the whole answer."""
    result = await _ask(verb, user_id, engram_id=engram_id)
    if not result.engrams:
        raise RequestRefused("not_found", f"there is no engram {engram_id}")
    return result.engrams[0], result


async def _write_fact(user_id: str, fact_id: int | None, body: FactBody) -> Response:
    text = f"{body.slot}: {body.value}" if body.value else ""
    edit = EditRecord(line=0, kind="fact", text=text, holds_from=body.holds_from, holds_until=body.holds_until)
    (outcome,) = (await _ask("write_fact", user_id, fact_id=fact_id, edits=(edit,))).outcomes
    return JsonResponse({"outcome": outcome})


async def _entries(user_id: str) -> list[EntryRecord]:
    """The facts and notes of a user that hold, page by page."""
    found, cursor = list[EntryRecord](), ""
    while True:
        page = await _ask("entries", user_id, cursor=cursor)
        found += page.entries
        cursor = page.cursor
        if not cursor:
            return found


async def _edit(user_id: str, edits: list[EditRecord], *, applies: bool) -> tuple[OutcomeRecord, ...]:
    """Return the effects of these edits, which are sent in parts that fit into a frame."""
    outcomes = list[OutcomeRecord]()
    for part in _parts(edits):
        outcomes += (await _ask("edit", user_id, edits=part, applies=applies)).outcomes
    return tuple(outcomes)


def _parts(edits: list[EditRecord]) -> Iterator[tuple[EditRecord, ...]]:
    part, size = list[EditRecord](), 0
    for edit in edits:
        more = len(edit.text.encode())
        if part and (len(part) == EDITS_AT_ONCE or size + more > EDITED_BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(edit)
        size += more
    if part:
        yield tuple(part)
