"""An answer of the MCP SDK on its way: each refusal is a JSON-RPC error with one sentence, however the SDK says it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

INVALID_REQUEST = -32600
NO_MESSAGE = "body: expected one JSON-RPC request, notification or response, as an object"
FAULTS: Mapping[int, str] = {
    400: "content-type: expected application/json",
    405: "this version of the protocol is spoken with POST alone",
    406: "accept: expected application/json, text/event-stream",
}


class MCPAnswer:
    """Is the `send` of one request."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._refusal: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on, or keep it until a refusal is whole."""
        if message["type"] == "http.response.start" and message["status"] >= 400:
            self._refusal = message
        elif self._refusal is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._refuse(self._refusal)

    async def _refuse(self, start: Message) -> None:
        body = json.dumps(_as_error(self._body, start["status"])).encode()
        headers = MutableHeaders(raw=list(start.get("headers", ())))
        headers["content-type"], headers["content-length"] = "application/json", str(len(body))
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _as_error(body: bytes, status: int) -> dict[str, Any]:
    """What was said as a JSON-RPC error. A message of several lines is a validator's, about each kind of message."""
    try:
        told: dict[str, Any] = json.loads(body)
        error = {**told["error"]}
    except (ValueError, TypeError, KeyError):
        said = FAULTS.get(status) or body.decode(errors="replace") or f"refused with {status}"
        return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": said}}
    if "\n" in error["message"]:
        error["message"] = NO_MESSAGE
    return {**told, "error": error}
