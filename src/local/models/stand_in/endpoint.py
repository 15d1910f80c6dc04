"""What every route does alike: read the JSON body, inject faults, word refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from local.models.stand_in.chat_request import parse_json
from local.models.stand_in.faults import GENERATING, Fault, FaultKind
from local.models.stand_in.refusal import Refusal
from local.models.stand_in.stand_in import StandIn

Json = dict[str, Any]

_CLIENT_CLOSED = 499
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A parsed request and the faults that strike it."""

    path: str
    body: Json
    faults: Sequence[Fault]


Handler = Callable[[StandIn, Asked], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def ollama_error(refusal: Refusal) -> Response:
    """Ollama's error body."""
    return JSONResponse({"error": str(refusal)}, refusal.status)


def endpoint(stand_in: StandIn, handle: Handler, refuse: Callable[[Refusal], Response] = ollama_error) -> Endpoint:
    """A Starlette endpoint around a handler of parsed requests."""

    async def respond(request: Request) -> Response:
        path = request.url.path
        try:
            body = await request.body()
            faults = stand_in.faults.take(path, body.decode("utf-8", "replace"))
            if status := next((fault for fault in faults if fault.kind is FaultKind.STATUS), None):
                record = stand_in.log.begin(path, time.monotonic())
                record.status, record.faults = status.status, [status.kind]
                stand_in.log.end(record, time.monotonic())
                return _failing(status)
            if path not in GENERATING:
                await asyncio.sleep(sum(f.seconds for f in faults if f.kind is FaultKind.FIRST_TOKEN_DELAY))
            return handle(stand_in, Asked(path, parse_json(body), faults))
        except Refusal as refusal:
            return refuse(refusal)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_CLOSED)
        except Exception as error:  # noqa: BLE001  # a bug here must not look like a broken connection to the client
            _log.error("%s failed: %r", path, error)
            return refuse(Refusal(500, "internal error of the stand-in"))

    return respond


def _failing(fault: Fault) -> Response:
    if isinstance(fault.body, str):
        return Response(fault.body, fault.status, media_type="text/plain")
    return Response(json.dumps(fault.body), fault.status, media_type="application/json; charset=utf-8")
