"""`/mcp`: the tools of `local2 mcp` over streamable HTTP, for the principal that the guard has identified."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from local.api.context import ApiContext, LivePart

if TYPE_CHECKING:
    from local.mcp.sessions import MCPSessions

SESSIONS = "local.mcp.sessions"
END_SECONDS = 5.0


class MCPEndpoint(LivePart):
    """The handler of `/mcp`. The SDK, which takes a second to import, is imported with the first
    request."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._beginning = asyncio.Lock()
        self._sessions: MCPSessions | None = None
        self._serving: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """End all waiting requests, and every session."""
        self._stopping.set()

    async def close(self) -> None:
        """Return when the sessions have ended."""
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=END_SECONDS)

    async def answer(self, context: ApiContext, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request to the API of this context."""
        async with self._beginning:
            if self._sessions is None:
                module = await asyncio.to_thread(importlib.import_module, SESSIONS)
                sessions: MCPSessions = module.MCPSessions(context)
                ready = asyncio.Event()
                self._serving = asyncio.create_task(sessions.serve(ready, self._stopping), name="mcp sessions")
                await ready.wait()
                self._sessions = sessions
        await self._sessions.answer(scope, receive, send)
