"""The routes a real Ollama does not have: /stand_in/script, /stand_in/fault and /stand_in/log."""

from __future__ import annotations

import time
from functools import partial

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.errors import ConfigError
from local.models.stand_in.faults import Fault
from local.models.stand_in.script import parse
from local.models.stand_in.stand_in import StandIn

_NO_CONTENT = 204


def routes(stand_in: StandIn) -> list[Route]:
    """Every control route."""
    return [
        Route("/stand_in/script", partial(_script, stand_in), methods=["POST", "DELETE"]),
        Route("/stand_in/fault", partial(_fault, stand_in), methods=["POST", "DELETE"]),
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
        added = Fault.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors()[0]
        return JSONResponse({"error": f"fault: {'.'.join(map(str, first['loc']))}: {first['msg']}"}, 400)
    stand_in.faults.add(added)
    return JSONResponse(added.model_dump(mode="json"))


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
