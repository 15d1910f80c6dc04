"""The stand-in as an HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from local.models.stand_in import control, ollama_api, openai_api
from local.models.stand_in.settings import StandInSettings
from local.models.stand_in.stand_in import StandIn


def create_app(settings: StandInSettings) -> Starlette:
    """The ASGI application; its model is `app.state.stand_in`. `ConfigError` for a bad script."""
    stand_in = StandIn(settings)
    routes = [*ollama_api.routes(stand_in), *openai_api.routes(stand_in), *control.routes(stand_in)]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    app.state.stand_in = stand_in
    return app


async def _not_found(_: Request, __: Exception) -> Response:
    return PlainTextResponse("404 page not found", 404)


async def _not_allowed(_: Request, __: Exception) -> Response:
    return PlainTextResponse("405 method not allowed", 405)


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(settings: StandInSettings, sock: socket.socket, stop: asyncio.Event | None = None) -> None:
    """Serve on a bound socket until `stop` is set (without one: until cancelled); answers under way are broken off."""
    app = create_app(settings)
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        # Accepted sockets inherit it. asyncio sets it only where the protocol number is given, which `create_server`
        # does not do, and without it each answer on a kept connection waits 40 ms for a delayed acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        # A connection that is dropped on purpose is an error to uvicorn; what fails by itself is logged in `endpoint`.
        log_level="critical",
        access_log=False,
        server_header=False,
        headers=[("server", "local2-stand-in")],
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    stopping = asyncio.create_task(_stop_when(stop or asyncio.Event(), server, app.state.stand_in))
    try:
        await server.serve(sockets=[sock])
    finally:
        stopping.cancel()
        sock.close()


async def _stop_when(stop: asyncio.Event, server: uvicorn.Server, stand_in: StandIn) -> None:
    await stop.wait()
    server.should_exit = True
    for task in stand_in.under_way:
        task.cancel()
