"""The HTTP response that carries a generation and stops it the moment the client closes the connection."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from local.models.stand_in.faults import Disconnect
from local.models.stand_in.refusal import Refusal
from local.models.stand_in.request_log import Record
from local.models.stand_in.stand_in import StandIn


class Generation(Response):
    """Sends each part as it comes; the status goes out with the first one, as in Ollama.

    A `Refusal` before the first part becomes an error response, worded by `refuse`.
    """

    def __init__(
        self,
        stand_in: StandIn,
        record: Record,
        parts: AsyncGenerator[bytes, None],
        media_type: str,
        refuse: Callable[[Refusal], Response],
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
        except Refusal as refusal:
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
