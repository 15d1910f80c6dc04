"""What the tools of the MCP server ask a system for; and a system that is asked over its HTTP API, in threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import anyio
import anyio.from_thread
import anyio.to_thread

from local.apps.console.answering_system import AnsweringSystem
from local.apps.console.followed_query import FollowedQuery
from local.apps.console.query_progress import QueryProgress
from local.backoff import Backoff
from local.errors import LocalError, NoAnswer

TELL_SECONDS = 1.0  # between two words on how far an answer is
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two looks for a system that has gone away
AWAY_SECONDS = 30.0  # for which a system that has gone away is looked for, so that a call goes on

Json = dict[str, Any]
Told = Callable[[float, str], Coroutine[Any, Any, None]]
"""Hears how much of an answer's course is known, and where it is."""


class MCPClient(Protocol):
    """Every method raises `LocalError`, with what the system says."""

    async def get(self, path: str, fields: Mapping[str, Any]) -> Json:
        """What a GET of the HTTP interface gives."""

    async def export(self, session_id: str) -> str:
        """A conversation as Markdown."""

    async def ask(self, body: Json, told: Told) -> Json:
        """What comes of a query, whose `body` is that of POST /query with an id. Cancelled, it has it stopped."""

    async def tools(self) -> list[Json]:
        """The tools that programs may call, as GET /tools gives them; none for whoever may call none."""

    async def call(self, tool: str, body: Json) -> Json:
        """How a call ended, whose `body` is that of POST /tools/{tool}/calls with an id. Cancelled, it has it
        stopped."""


class HTTPSystemClient:
    """The system is looked for with each call: it may be started after the server."""

    def __init__(self, system: AnsweringSystem) -> None:
        self._system = system

    async def get(self, path: str, fields: Mapping[str, Any]) -> Json:
        """See `MCPClient`."""

        def get() -> Json:
            found: Json = self._system.find().request("GET", f"{path}?{urlencode(fields)}")
            return found

        return await anyio.to_thread.run_sync(get, abandon_on_cancel=True)

    async def export(self, session_id: str) -> str:
        """See `MCPClient`."""
        return await anyio.to_thread.run_sync(lambda: self._system.find().export(session_id), abandon_on_cancel=True)

    async def tools(self) -> list[Json]:
        """See `MCPClient`."""
        try:
            found: list[Json] = (await self.get("/tools", {}))["tools"]
        except NoAnswer as error:
            if error.kind != "forbidden":
                raise
            return []
        return found

    async def call(self, tool: str, body: Json) -> Json:
        """See `MCPClient`. It is made again under its id where the system goes away meanwhile."""
        self._system.find()
        try:
            return await anyio.to_thread.run_sync(self._call, tool, body, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), suppress(LocalError):
                path = f"/tools/calls/{body['query_id']}/cancel"
                await anyio.to_thread.run_sync(lambda: self._system.find().request("POST", path, {}))
            raise

    def _call(self, tool: str, body: Json) -> Json:
        path, end = f"/tools/{quote(tool, safe='')}/calls", time.monotonic() + AWAY_SECONDS
        pauses = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                found: Json = self._system.find_again().request("POST", path, body)
                return found
            except NoAnswer as error:
                if error.kind not in ("unreachable", "unavailable") or time.monotonic() > end:
                    raise
            time.sleep(pauses.next())

    async def ask(self, body: Json, told: Told) -> Json:
        """See `MCPClient`."""
        self._system.find()  # at once, where none runs: one that goes away meanwhile is waited for
        query = FollowedQuery(self._system.find_again, body)
        try:
            return await anyio.to_thread.run_sync(_follow, query, told, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            query.leave()
            with anyio.CancelScope(shield=True), suppress(LocalError):
                await anyio.to_thread.run_sync(query.cancel)
            raise


def _follow(query: FollowedQuery, told: Told) -> Json:
    progress, last, heard = QueryProgress(), 0.0, 0
    for event in query:
        heard += progress.receive(event)
        if time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            anyio.from_thread.run(told, heard, progress.waiting or progress.state)
    assert progress.end is not None
    if progress.end.name == "error":
        raise NoAnswer("failed", progress.end.data["error"]["message"])
    return progress.end.data
