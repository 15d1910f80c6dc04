"""The stand-in as an HTTP server, with the routes that a real Ollama does not have."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Generator
from functools import partial

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from local.errors import ConfigError
from local.models.stand_in import ollama_api, openai_api
from local.models.stand_in.faults import InjectedFault
from local.models.stand_in.script import parse
from local.models.stand_in.stand_in import StandIn, StandInSettings

TICK_SECONDS = 1.0


def create_app(settings: StandInSettings) -> Starlette:
    """The ASGI application; its model is `app.state.stand_in`. `ConfigError` for a bad script."""
    stand_in = StandIn(settings)
    routes = [*ollama_api.routes(stand_in), *openai_api.routes(stand_in), *control_routes(stand_in)]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    app.state.stand_in = stand_in
    return app


async def _not_found(_: Request, __: Exception) -> Response:
    return PlainTextResponse("404 page not found", 404)


async def _not_allowed(_: Request, __: Exception) -> Response:
    return PlainTextResponse("405 method not allowed", 405)


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and looks once a second instead of ten times."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # which renews the Date header
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._stopping.wait()

    def stop(self) -> None:
        """Begin to shut down."""
        self.should_exit = True
        self._stopping.set()

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


async def _stop_when(stop: asyncio.Event, server: _Server, stand_in: StandIn) -> None:
    await stop.wait()
    server.stop()
    for task in stand_in.under_way:
        task.cancel()


_NO_CONTENT = 204


def control_routes(stand_in: StandIn) -> list[Route]:
    """Every control route."""
    return [
        Route("/stand_in/script", partial(_script, stand_in), methods=["POST", "DELETE"]),
        Route("/stand_in/fault", partial(_fault, stand_in), methods=["POST", "DELETE"]),
        Route("/stand_in/obedience", partial(_obedience, stand_in), methods=["POST", "DELETE"]),
        Route("/stand_in/log", partial(_log, stand_in), methods=["GET", "DELETE"]),
    ]


async def _script(stand_in: StandIn, request: Request) -> Response:
    """Play a script, or none any more."""
    if request.method == "DELETE":
        stand_in.scripts.clear()
        return Response(status_code=_NO_CONTENT)
    try:
        added = parse((await request.body()).decode("utf-8", "replace"), "script")
    except ConfigError as error:
        return JSONResponse({"error": str(error)}, 400)
    stand_in.add_script(added)
    return JSONResponse({"story": added.story, "turns": len(added.turns)})


async def _fault(stand_in: StandIn, request: Request) -> Response:
    """Inject a fault, or none any more."""
    if request.method == "DELETE":
        stand_in.faults.clear()
        return Response(status_code=_NO_CONTENT)
    try:
        added = InjectedFault.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors()[0]
        return JSONResponse({"error": f"fault: {'.'.join(map(str, first['loc']))}: {first['msg']}"}, 400)
    stand_in.faults.add(added)
    return JSONResponse(added.model_dump(mode="json"))


async def _obedience(stand_in: StandIn, request: Request) -> Response:
    """Obey whatever is read, or no longer."""
    stand_in.is_obedient = request.method == "POST"
    return Response(status_code=_NO_CONTENT)


async def _log(stand_in: StandIn, request: Request) -> Response:
    """The requests so far; ?begun=N waits until there are N, ?idle=1 until none is under way any more."""
    if request.method == "DELETE":
        stand_in.log.clear()
        return Response(status_code=_NO_CONTENT)
    wanted = request.query_params
    if wanted.get("begun", "").isdecimal():
        await stand_in.log.until_begun(int(wanted["begun"]))
    if wanted.get("idle"):
        await stand_in.log.until_idle()
    return JSONResponse({"now": time.monotonic(), "requests": stand_in.log.entries()})
