"""What is remembered: search it, look at it, pin, delete and take it along."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import Chunks, Download, JsonResponse, PathId, RequestRefused, read_body, takes
from local.api.security import Access, Caller, open_to
from local.memory.memory_file import memory_file, read_memory_file
from local.memory.messages import EngramRecord

MAX_QUERY = 2_000
MOST_FILE = 1_000_000  # characters of MEMORY.md
MOST_EDITS = 2_000  # in it, at once
END_OF_TIME = 1e11  # seconds since 1970

Question = Annotated[str, Query(max_length=MAX_QUERY)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str, Query(max_length=200)]
Before = Annotated[float | None, Query(ge=0, le=END_OF_TIME, allow_inf_nan=False)]


class MemoryFileBody(BaseModel):
    """The body of POST /memory/file: the whole text, and whether what was changed in it is to be done."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, StringConstraints(max_length=MOST_FILE)]
    apply: bool = False


def add_routes(routes: APIRouter) -> None:
    """The routes under /memory. Those of one engram come last: their path matches every name."""
    memory = _Memory()
    routes.add_api_route("/memory", memory.listing, methods=["GET"])
    routes.add_api_route("/memory/facts", memory.facts, methods=["GET"])
    routes.add_api_route("/memory/notes", memory.notes, methods=["GET"])
    routes.add_api_route("/memory/export", memory.export, methods=["GET"])
    routes.add_api_route("/memory/file", memory.file, methods=["GET"])
    routes.add_api_route("/memory/file", memory.read_back, methods=["POST"], openapi_extra=takes(MemoryFileBody))
    routes.add_api_route("/memory/{engram_id}", memory.show, methods=["GET"])
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
    ) -> Response:
        """With `query`, what has to do with it, best first; without, the latest exchanges: those after the page that
        gave the `cursor`, or those asked `before`."""
        memories = api().memories
        if not query.strip():
            page = await memories.ask("list", caller.name, limit=limit, cursor=cursor, before=before)
            paging = {"cursor": page.cursor or None, "more_before": page.more_before}
            return JsonResponse({"engrams": _aged(page.engrams), **paging})
        for name, given in (("before", before is not None), ("cursor", cursor)):
            if given:
                raise RequestRefused(
                    "invalid", f"{name}: a search has no pages; leave it out, or leave out the query", name
                )
        found = await memories.ask("search", caller.name, query=query, limit=limit)
        return JsonResponse({"hits": _aged(found.hits), "degraded": found.degraded})

    @open_to(Access.USERS)
    async def show(self, engram_id: PathId, caller: Caller) -> Response:
        """One engram, with the facts that it is the source of and what was said about it since."""
        engram, result = await api().memories.engram("get", caller.name, engram_id)
        return JsonResponse({"engram": _aged([engram])[0], "facts": result.facts, "changes": result.changes})

    @open_to(Access.USERS)
    async def delete(self, engram_id: PathId, caller: Caller) -> Response:
        """Remove an engram for good, and the exchange that it remembers. Others may repeat it: their ids are told."""
        engram, result = await api().memories.engram("delete", caller.name, engram_id)
        api().session.forget(engram_id, engram.query_id)
        told = {"engram_id": engram_id, "query_id": engram.query_id, "deleted": True}
        return JsonResponse({**told, "repeated_in": result.repeated_in})

    @open_to(Access.USERS)
    async def pin(self, engram_id: PathId, caller: Caller) -> Response:
        """Have what the user said there in every conversation."""
        await api().memories.engram("pin", caller.name, engram_id)
        return JsonResponse({"engram_id": engram_id, "pinned": True})

    @open_to(Access.USERS)
    async def unpin(self, engram_id: PathId, caller: Caller) -> Response:
        """Undo that."""
        await api().memories.engram("unpin", caller.name, engram_id)
        return JsonResponse({"engram_id": engram_id, "pinned": False})

    @open_to(Access.USERS)
    async def restore(self, engram_id: PathId, caller: Caller) -> Response:
        """Have a note of the assistant's hold again that was replaced or withdrawn."""
        await api().memories.engram("restore", caller.name, engram_id)
        return JsonResponse({"engram_id": engram_id, "restored": True})

    @open_to(Access.USERS)
    async def notes(self, caller: Caller) -> Response:
        """What the assistant has written down and still holds, the latest first."""
        result = await api().memories.ask("notes", caller.name)
        return JsonResponse({"notes": _aged(result.engrams)})

    @open_to(Access.USERS)
    async def facts(self, caller: Caller, history: bool = False) -> Response:
        """What the user has stated and still holds, with `history` also what does not; the lines that a model is told
        of the user unasked; those of them that are pinned; and the pinned engrams that have no room there."""
        result = await api().memories.ask("facts", caller.name, history=history or None)
        shown = {"told": result.lines, "pinned": result.pinned, "left_out": result.left_out}
        return JsonResponse({"facts": result.facts, **shown})

    @open_to(Access.USERS)
    async def export(self, caller: Caller) -> Response:
        """Everything that is kept of a user, one JSON object on each line."""
        return Download(self._lines(caller.name), "memory.ndjson")

    @open_to(Access.USERS)
    async def file(self, caller: Caller) -> Response:
        """What is known and noted as the text of MEMORY.md, to be edited by hand."""
        return JsonResponse({"text": memory_file(await api().memories.entries(caller.name))})

    @open_to(Access.USERS)
    async def read_back(self, request: Request, caller: Caller) -> Response:
        """What was changed in such a file, and what that does, or has done if it is to be applied."""
        body = await read_body(request, MemoryFileBody)
        reading = read_memory_file(body.text)
        if len(reading.edits) > MOST_EDITS:
            raise RequestRefused("too_large", f"more than {MOST_EDITS} lines are changed; do it in parts", "text")
        outcomes = await api().memories.edit(caller.name, reading.edits, applies=body.apply)
        told = [outcome for outcome in outcomes if outcome.what != "nothing"]
        return JsonResponse({"outcomes": told, "problems": reading.problems, "applied": body.apply})

    async def _lines(self, user_id: str) -> Chunks:
        async for page in api().memories.export(user_id):
            yield page.encode()


def _aged(engrams: Sequence[EngramRecord]) -> list[dict[str, Any]]:
    now = time.time()
    return [{**engram.model_dump(mode="json"), "age_seconds": max(0.0, now - engram.asked_at)} for engram in engrams]
