"""One server while it is in use: started with the first call, and again after its end, with pauses that grow."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from local.backoff import Backoff
from local.errors import ToolError
from local.services.sandbox.contained_server import ContainedServer
from local.tools.mcp_servers.approved_tool import ApprovedTool
from local.tools.mcp_servers.remote_server import RemoteServer
from local.tools.tool_output import ToolOutput

if TYPE_CHECKING:
    from local.tools.mcp_servers.mcp_session import MCPSession

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
END_SECONDS = 3.0  # for a server that says no more to end
CLOSED = "closed"
SESSION = "local.tools.mcp_servers.mcp_session"
Server = ContainedServer | RemoteServer
Start = Callable[[], AbstractAsyncContextManager[Server]]


class MCPConnection:
    """Calls the tools of one server. `start` makes its process, or reaches it; `name` is what `mcp.json` calls it.
    `trouble` says why it is not there; it is empty for one that is, or that nobody has needed so far."""

    def __init__(
        self, name: str, start: Start, start_seconds: float, require: Callable[[], object] | None = None
    ) -> None:
        """`require()` raises `ToolError` where the server may not be used any more, which ends it."""
        self.name, self.trouble = name, ""
        self._start, self._start_seconds, self._require = start, start_seconds, require
        self.may_call: Callable[[], object] | None = None  # raises `ToolError` where nothing may be called any more
        self._serving: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[MCPSession] | None = None
        self._server: Server | None = None
        self._pauses, self._again_at = Backoff(FIRST_PAUSE, LONGEST_PAUSE), 0.0

    async def call(self, tool: ApprovedTool, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool. Raises `ToolError`: unavailable, not_approved, or what the server says."""
        await self._check(self._require)
        await self._check(self.may_call)
        async with self._noticing_its_end():
            output = await (await self._session_with(tool)).call(tool, arguments)
        self._pauses.reset()
        return output

    async def tools(self) -> list[dict[str, Any]]:
        """What the server says of its tools. Raises `ToolError`."""
        await self._check(self._require)
        async with self._noticing_its_end():
            return await (await self._session()).tools()

    async def close(self) -> None:
        """End the server."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
            self._serving = None

    async def _check(self, require: Callable[[], object] | None) -> None:
        if require is None:
            return
        try:
            await asyncio.to_thread(require)
        except ToolError:
            await self.close()
            raise

    @asynccontextmanager
    async def _noticing_its_end(self) -> AsyncIterator[None]:
        try:
            yield
        except ToolError as error:
            if self._is_over(error):
                raise await self._ended() from None
            raise

    async def _session_with(self, tool: ApprovedTool) -> MCPSession:
        """That with the server, which says what was approved of a tool. One that was lost while nobody looked is
        reached again: nothing was called yet."""
        was_open = self._opened is not None and self._opened.done()
        session = await self._session()
        try:
            await session.require(tool)
        except ToolError as error:
            if not (was_open and self._is_over(error)):
                raise
            await self._ended()
            session = await self._session()
            await session.require(tool)
        return session

    def _is_over(self, error: ToolError) -> bool:
        return error.kind == CLOSED or (isinstance(self._server, RemoteServer) and self._server.is_lost)

    async def _ended(self) -> ToolError:
        """Why the server is not there, with its last words."""
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=END_SECONDS)
        return self._unavailable()

    async def _session(self) -> MCPSession:
        """That with the server, which is started if it does not run. One that has just failed is left alone a while."""
        if self._serving is None or self._serving.done():
            if time.monotonic() < self._again_at:
                raise self._unavailable()
            self._opened = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._opened))
        assert self._opened is not None
        either: list[asyncio.Future[Any]] = [self._opened, self._serving]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            raise self._unavailable()
        return self._opened.result()

    async def _serve(self, opened: asyncio.Future[MCPSession]) -> None:
        """From its start to its end, whatever that is."""
        try:
            sessions = (await asyncio.to_thread(importlib.import_module, SESSION)).MCPSession
            async with self._start() as server:
                self._server = server
                ended = asyncio.create_task(server.ended())
                try:
                    await self._talk(sessions, server, ended, opened)
                finally:
                    ended.cancel()
        except Exception as error:  # noqa: BLE001 - whatever a server does to the SDK, the model reads why
            self.trouble = self.trouble or _reason(error)
        finally:
            was_there = opened.done() and isinstance(self._server, RemoteServer)  # it ends with us alone
            self._again_at = time.monotonic() + (0.0 if was_there else self._pauses.next())

    async def _talk(
        self,
        sessions: type[MCPSession],
        server: Server,
        ended: asyncio.Task[str],
        opened: asyncio.Future[MCPSession],
    ) -> None:
        self.trouble = ""
        try:
            async with asyncio.timeout(self._start_seconds) as limit, sessions.opened(server, self.name) as session:
                limit.reschedule(None)
                opened.set_result(session)
                self.trouble = await ended
        except TimeoutError:
            self.trouble = f"it did not answer within {self._start_seconds:g} s of its start"
        except Exception:
            if not isinstance(server, RemoteServer) or server.is_lost:
                with suppress(TimeoutError):
                    self.trouble = await asyncio.wait_for(asyncio.shield(ended), END_SECONDS)  # which says more
            raise

    def _unavailable(self) -> ToolError:
        return ToolError(f"the MCP server {self.name} is not there: {self.trouble or 'it ends'}", kind="unavailable")


def _reason(error: BaseException) -> str:
    """The first line of what went wrong first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).partition("\n")[0]
