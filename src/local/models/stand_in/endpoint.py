"""What every route does alike: read the JSON body, inject faults, word refusals, stream the answer."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from local.models.stand_in.faults import GENERATING, Disconnect, FaultKind, InjectedFault
from local.models.stand_in.ollama_request import OllamaRefusal, OllamaRequest, parse_json
from local.models.stand_in.request_log import RequestRecord
from local.models.stand_in.stand_in import StandIn, now

Json = dict[str, Any]

_CLIENT_CLOSED = 499
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A parsed request and the faults that strike it."""

    path: str
    body: Json
    faults: Sequence[InjectedFault]


Handler = Callable[[StandIn, IncomingRequest], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def ollama_error(refusal: OllamaRefusal) -> Response:
    """Ollama's error body."""
    return JSONResponse({"error": str(refusal)}, refusal.status)


def endpoint(
    stand_in: StandIn, handle: Handler, refuse: Callable[[OllamaRefusal], Response] = ollama_error
) -> Endpoint:
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
            return handle(stand_in, IncomingRequest(path, parse_json(body), faults))
        except OllamaRefusal as refusal:
            return refuse(refusal)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_CLOSED)
        except Exception as error:  # noqa: BLE001  # a bug here must not look like a broken connection to the client
            _log.error("%s failed: %r", path, error)
            return refuse(OllamaRefusal(500, "internal error of the stand-in"))

    return respond


def _failing(fault: InjectedFault) -> Response:
    if isinstance(fault.body, str):
        return Response(fault.body, fault.status, media_type="text/plain")
    return Response(json.dumps(fault.body), fault.status, media_type="application/json; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Talk:
    """`chunks` are Ollama's chat chunks, the last one with the counts; they can be read once."""

    record: RequestRecord
    chunks: AsyncGenerator[Json, None]

    @classmethod
    def begin(cls, stand_in: StandIn, asked: IncomingRequest, request: OllamaRequest) -> Talk:
        """Log the request and decide the answer; a `OllamaRefusal` if the model cannot do it or it does not fit."""
        record = stand_in.log.begin(asked.path, time.monotonic())
        record.model, record.options, record.think = request.model, request.options or {}, request.think
        record.messages, record.tools = list(request.messages), list(request.tools)
        record.stream, record.truncate, record.format = request.stream, request.truncate, request.format
        record.faults = [fault.kind for fault in asked.faults]
        try:
            model = stand_in.check(request)
            prompt = stand_in.prompt(request, model)
            delivery = stand_in.decide(request, model, prompt, asked.faults, record)
        except Exception as error:
            record.status = error.status if isinstance(error, OllamaRefusal) else 500
            stand_in.log.end(record, time.monotonic())
            raise
        record.prompt_tokens, record.kept_messages = prompt.tokens, len(prompt.messages)
        stand_in.library.use(model, now())
        return cls(record, stand_in.speak(request, prompt, delivery))

    async def whole(self) -> AsyncGenerator[Json, None]:
        """All chunks as one, merged as Ollama does for `stream` false."""
        thinking, content, calls, logprobs = "", "", [], []
        async with aclosing(self.chunks) as chunks:
            async for part in chunks:
                thinking += part["message"].get("thinking", "")
                content += part["message"]["content"]
                calls += part["message"].get("tool_calls", [])
                logprobs += part.get("logprobs", [])
        message = {"role": "assistant", "content": content}
        said = {"thinking": thinking, "tool_calls": calls}
        whole = part | {"message": message | {key: value for key, value in said.items() if value}}
        yield whole | ({"logprobs": logprobs} if logprobs else {})


class Generation(Response):
    """Sends each part as it comes; the status goes out with the first one, as in Ollama.

    A `OllamaRefusal` before the first part becomes an error response, worded by `refuse`.
    """

    def __init__(
        self,
        stand_in: StandIn,
        record: RequestRecord,
        parts: AsyncGenerator[bytes, None],
        media_type: str,
        refuse: Callable[[OllamaRefusal], Response],
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._stand_in, self._record, self._parts, self._refuse = stand_in, record, parts, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._send_parts(scope, receive, send))
        left = asyncio.create_task(_client_left(receive))
        self._stand_in.under_way.add(work)
        try:
            await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._record.disconnected_at = time.monotonic()
        finally:
            left.cancel()
            work.cancel()
            # Waits until the generator has given its place in the queue back; a cancellation is not an error here.
            outcome, _ = await asyncio.gather(work, left, return_exceptions=True)
            self._stand_in.under_way.discard(work)
            self._stand_in.log.end(self._record, time.monotonic())
        if isinstance(outcome, Exception):
            raise outcome

    async def _send_parts(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._parts) as parts:
                async for part in parts:
                    await self._start(send)
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                    self._record.chunks += 1
        except OllamaRefusal as refusal:
            self._record.status = refusal.status
            await self._refuse(refusal)(scope, receive, send)
            return
        except Disconnect:
            await self._start(send)
            # Returning without an end makes the server drop the connection.
            return
        await self._start(send)
        await send({"type": "http.response.body", "body": b""})

    async def _start(self, send: Send) -> None:
        if not self._record.status:
            self._record.status = 200
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})


def json_line(value: object) -> bytes:
    """A line of NDJSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
