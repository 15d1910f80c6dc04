"""The outermost layer of the HTTP API: applies the guards, bounds bodies, and lets no exception out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from local.apps.api.errors import Refusal, error_response
from local.apps.api.guards import Policy

log = logging.getLogger(__name__)

BODY_SECONDS = 30.0
# What is read and thrown away before a refusal, so that a client that is still sending gets to see it.
MAX_DISCARDED = 8 * 1024 * 1024
DISCARD_SECONDS = 2.0


class ClientLeft(Exception):
    """The client has gone; there is nobody to answer."""


class Doorkeeper:
    """ASGI: hands `app` requests that `policy` lets in, with their bodies read."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except ClientLeft:
            return
        except Exception as error:  # noqa: BLE001 - the app has answered and logged it, only uvicorn would hear of it
            log.debug("%s: %s", type(error).__name__, error)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Of a header that stands twice the first one counts, so that nothing slips in behind it.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            self._policy.check(scope["method"], scope["path"], headers)
            body = await _read(receive, headers, self._policy.max_body(scope["path"]))
        except Refusal as refusal:
            if "expect" not in headers:
                await _discard(receive)
            await error_response(scope["path"], refusal, _headers_of(refusal))(scope, receive, send)
            return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)


async def _read(receive: Receive, headers: Mapping[str, str], max_bytes: int) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    if "transfer-encoding" not in headers and declared in ("", "0"):
        return b""
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                body += message["body"]
                more = message["more_body"]
                if len(body) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError:
        raise Refusal("too_slow", f"the body did not arrive within {BODY_SECONDS:g} s") from None
    return bytes(body)


async def _discard(receive: Receive) -> None:
    size, more = 0, True
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while more and size < MAX_DISCARDED:
                message = await receive()
                more, size = message.get("more_body", False), size + len(message.get("body", b""))
    except TimeoutError:
        return  # it goes on sending, or waits: it is answered now


def _too_large(max_bytes: int) -> Refusal:
    return Refusal("too_large", f"a body may hold at most {max_bytes} bytes")


def _headers_of(refusal: Refusal) -> Mapping[str, str]:
    challenge = {"www-authenticate": "Bearer"} if refusal.kind == "unauthorized" else {}
    return {"connection": "close", **challenge}
