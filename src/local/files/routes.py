"""HTTP routes for the changes of tools in the workspace: show and undo them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import Id, JsonResponse, read_body, takes
from local.api.security import Access, open_to
from local.files.messages import ChangeRequest, ChangeResult

SECONDS = 30.0  # to read and to restore files

Limit = Annotated[int, Query(ge=1, le=1000)]
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(9998, 12, 31)  # those that a machine can express in seconds since 1970


class UndoBody(BaseModel):
    """The body of POST /changes/undo: one of a call, a query, and a day, which is one of this machine's time zone."""

    model_config = ConfigDict(extra="forbid", strict=True)
    call_id: Annotated[str, Field(min_length=1, max_length=400)] | None = None
    query_id: Id | None = None
    day: Annotated[date, Field(strict=False, ge=FIRST_DAY, le=LAST_DAY)] | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if sum(given is not None for given in (self.call_id, self.query_id, self.day)) != 1:
            raise ValueError("expected one of call_id, query_id and day")
        return self

    def fields(self) -> dict[str, Any]:
        """The selection as fields of a `ChangeRequest`."""
        if self.day is None:
            return {"call_id": self.call_id, "query_id": self.query_id}
        begins = datetime.combine(self.day, time())
        return {"since": begins.timestamp(), "until": (begins + timedelta(days=1)).timestamp()}


def add_routes(routes: APIRouter) -> None:
    """The routes under /changes."""

    @routes.get("/changes")
    @open_to(Access.OWNER)
    async def listing(
        call_id: Annotated[str | None, Query(max_length=400)] = None, query_id: Id | None = None, limit: Limit = 100
    ) -> Response:
        """Which files were changed, the latest first; of one call or query with the diffs."""
        is_one = call_id is not None or query_id is not None
        request = ChangeRequest(verb="show" if is_one else "list", call_id=call_id, query_id=query_id, limit=limit)
        found = await api().ask("files", request, ChangeResult, seconds=SECONDS)
        return JsonResponse({"workspace": found.workspace, "changes": found.changes})

    @routes.post("/changes/undo", openapi_extra=takes(UndoBody))
    @open_to(Access.OWNER)
    async def undo(request: Request) -> Response:
        """Have the files be as they were before: all of them, or none where one was changed since."""
        asked = await read_body(request, UndoBody)
        undoing = ChangeRequest(verb="undo", limit=1000, **asked.fields())
        done = await api().ask("files", undoing, ChangeResult, seconds=SECONDS)
        return JsonResponse({"workspace": done.workspace, "undone": done.changes})
