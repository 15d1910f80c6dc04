"""An MCP server over HTTP as one of 2025 may be, with sessions that it can lose, on a socket of its own."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

Json = dict[str, Any]


class PlainHTTPServer:
    """`headers` are those of the last request; where `elsewhere` is set, every request is sent on to there."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.begun = 0
        self.elsewhere = ""
        self.said = "What it does."
        self.headers: Json = {}
        self.app: ASGIApp = Starlette(routes=[Route("/mcp", self._answer, methods=["GET", "POST", "DELETE"])])

    async def _answer(self, request: Request) -> Response:
        self.headers = dict(request.headers)
        if self.elsewhere:
            return RedirectResponse(self.elsewhere, 307)
        if request.method != "POST":
            return Response(status_code=405)
        asked = await request.json()
        if asked["method"] == "initialize":
            self.begun += 1
            self.sessions.add(f"s{self.begun}")
            version = asked["params"]["protocolVersion"]
            info = {"name": "plain", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            return self._told(asked, {"result": result}, {"mcp-session-id": f"s{self.begun}"})
        if request.headers.get("mcp-session-id") not in self.sessions:
            return self._told(asked, {"error": {"code": -32600, "message": "Session not found"}}, status=404)
        if "id" not in asked:
            return Response(status_code=202)
        match asked["method"]:
            case "tools/list":
                tools = [
                    {"name": name, "description": self.said, "inputSchema": {"type": "object"}}
                    for name in ("echo", "huge")
                ]
                return self._told(asked, {"result": {"tools": tools}})
            case "tools/call":
                text = "x" * (2 * 1024**2) if asked["params"]["name"] == "huge" else json.dumps(asked["params"])
                return self._told(asked, {"result": {"content": [{"type": "text", "text": text}]}})
        return self._told(asked, {"error": {"code": -32601, "message": "unknown"}})

    @staticmethod
    def _told(asked: Json, said: Json, headers: Json | None = None, status: int = 200) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": asked.get("id"), **said}, status, headers)


@asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[int]:
    """Serve it on a port of loopback, which is told; at the end nobody is there."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="auto", timeout_graceful_shutdown=1, ws="none")
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        serving = asyncio.create_task(server._serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving
