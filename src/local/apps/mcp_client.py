"""What the tools of the MCP server ask a system for; and a system that is asked over its HTTP API, in threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import anyio.to_thread

from local.apps.console.answering_system import AnsweringSystem
from local.apps.console.followed_query import FollowedQuery
from local.apps.console.query_progress import QueryProgress
from local.errors import LocalError, NoAnswer

TELL_SECONDS = 1.0  # between two words on how far an answer is

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
