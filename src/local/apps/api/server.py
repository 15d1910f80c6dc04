"""Serves an ASGI application on a socket that somebody else bound and keeps."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

import h11
import uvicorn
from pydantic_core import to_json
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

TICK_SECONDS = 1.0
STOP_SECONDS = 1
HEADERS = [("x-content-type-options", "nosniff"), ("cross-origin-resource-policy", "same-origin")]


class _Protocol(H11Protocol):
    """Answers what is no HTTP in JSON; closes the connection without a word if an answer is under way already."""

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = to_json({"error": {"kind": "malformed", "message": "this is no HTTP request"}})
            headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
            response = h11.Response(status_code=400, headers=[*headers, ("connection", "close")])
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the application still sends goes nowhere
        self.transport.close()


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()
        self._stopping = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # which renews the Date header
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._stopping.wait()

    def stop(self) -> None:
        """Begin to shut down."""
        self.should_exit = True
        self._stopping.set()


@asynccontextmanager
async def serving(app: ASGIApp, listener: socket.socket, before_stop: Callable[[], object]) -> AsyncIterator[None]:
    """Serve a TCP socket while the block lasts. `before_stop` is to end what waits; answers get a second to get away.

    Closes its own handle of the socket: clients that connect later wait for the next process that serves it.
    """
    # Accepted sockets inherit it. asyncio sets it only where the protocol number is given, which `create_server` does
    # not do, and without it each answer on a kept connection waits 40 ms for a delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        # To uvicorn a stream that is cut at the end is an error, with a traceback; the application logs what matters.
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whose client it is makes no difference
        headers=HEADERS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listener]), name="http server")
        await server.serving.wait()
        try:
            yield
        finally:
            before_stop()
            server.stop()
