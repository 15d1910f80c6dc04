"""Serves an ASGI application on a socket that somebody else bound and keeps."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from local.apps.api.http_connection import CLOSE, ConnectionLimit, HttpConnection
from local.apps.listener import BACKLOG
from local.tick import until_next_tick

TICK_SECONDS = 1.0
STOP_SECONDS = 1.0
ACCEPTED_ROUNDS = 4  # of the loop, until what was accepted in the first of them is a connection
ACCEPTED_AT_ONCE = 16  # connections, in one round of the loop; a few rounds later they are counted
HEADERS = [("x-content-type-options", "nosniff"), ("cross-origin-resource-policy", "same-origin")]


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
            self._look_at_connections()
            with suppress(TimeoutError):
                async with asyncio.timeout(until_next_tick(asyncio.get_running_loop().time(), TICK_SECONDS)):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and answer what has arrived. Who is not answered in time is told so."""
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]  # of the answers from now on
        await self._stop_accepting(sockets or [])
        for connection in self._connections():
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(*(connection.lost.wait() for connection in self._connections()))
        for connection in self._connections():
            connection.end()
        if tasks := list(self.server_state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=STOP_SECONDS)

    async def _stop_accepting(self, sockets: list[socket.socket]) -> None:
        """asyncio drops without a word what it has accepted and not made a connection of when a server is closed."""
        loop = asyncio.get_running_loop()
        for listener in sockets:
            loop.remove_reader(listener)
        for _ in range(ACCEPTED_ROUNDS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()

    def _look_at_connections(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in self._connections():
            connection.look(now)

    def _connections(self) -> list[HttpConnection]:
        return [each for each in self.server_state.connections if isinstance(each, HttpConnection)]

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
    protocol: Any = partial(HttpConnection, ConnectionLimit())
    config = uvicorn.Config(
        app,
        http=protocol,
        backlog=ACCEPTED_AT_ONCE,
        ws="none",
        lifespan="off",
        log_config=None,
        # To uvicorn a stream that is cut at the end is an error, with a traceback; the application logs what matters.
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what a header claims of the client counts for nothing
        headers=HEADERS,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listener]), name="http server")
        await server.serving.wait()
        listener.listen(BACKLOG)  # asyncio has made the queue as short as what it accepts at once
        try:
            yield
        finally:
            before_stop()
            server.stop()
