"""One HTTP connection of a client, and how many of them there may be."""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Iterable
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from local.apps.api.errors import RETRY_SECONDS, RequestRefused, error_response
from local.apps.api.peer import Peer
from local.apps.open_files import most_open_files

log = logging.getLogger(__name__)

HEAD_SECONDS = 10.0  # for the whole head of a request, or for its first byte
NEW_SECONDS = 1.0
CLOSE = (b"connection", b"close")
OTHER_FILES = 160  # of this process: databases, the bus, attachments, and what is accepted before it is counted


class ConnectionLimit:
    """Keeps the connections below the number of files that this process may have open."""

    least = 64  # however few files there may be

    def __init__(self) -> None:
        self.most = max(most_open_files() - OTHER_FILES, self.least)
        self._is_told = False

    def has_room(self, connections: Iterable[Any], newcomer: HttpConnection) -> bool:
        """Whether a newcomer may stay; if there are too many, the one that is idle for longest is closed for it."""
        others = [other for other in connections if other is not newcomer and not other.transport.is_closing()]
        if len(others) < self.most:
            return True
        self._tell()
        idle = sorted((other for other in others if other.is_idle), key=lambda other: other.idle_since)
        oldest = next((other for other in idle if not other.has_arrived()), None)
        if oldest is not None:
            oldest.transport.close()
        return oldest is not None

    def _tell(self) -> None:
        if not self._is_told:
            log.warning("%d connections are open, and no more may be: idle ones are closed", self.most)
        self._is_told = True


class HttpConnection(H11Protocol):
    """Answers what is no HTTP in JSON, and closes the connection of whoever keeps it waiting for a request."""

    def __init__(self, limit: ConnectionLimit, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._limit = limit
        self.idle_since = self.loop.time()
        self.lost = asyncio.Event()
        self._answered: object = None  # the last request that was

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered, or has arrived."""
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    @property
    def _is_about_to_ask(self) -> bool:
        """Whether part of a request is here, or a client who has come just now: it may have been held up."""
        is_new = self.cycle is None and self.loop.time() - self.idle_since < NEW_SECONDS
        return is_new or bool(self.conn.trailing_data[0])

    def has_arrived(self) -> bool:
        """Whether something of the client's is there that was not read yet, as a process that was held up finds it: it
        is to be answered before this connection is closed for its silence."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """A client has come."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "peer": Peer(self.client, self.server)}  # for all that is asked on it
        if len(self.connections) > self._limit.most and not self._limit.has_room(self.connections, self):
            self.app = _no_room

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left, or was closed out."""
        super().connection_lost(exc)
        self.lost.set()

    def look(self, now: float) -> None:
        """To be called every second or so: no request waits for this, so none is slower for it."""
        if not self.is_idle:
            self._answered = None
        elif self._answered is not self.cycle:
            self._answered, self.idle_since = self.cycle, now
        elif now - self.idle_since >= HEAD_SECONDS and not self.transport.is_closing() and not self.has_arrived():
            self._close_idle(
                RequestRefused("too_slow", f"the head of the request did not arrive within {HEAD_SECONDS:g} s")
            )

    def timeout_keep_alive_handler(self) -> None:
        """No request has come for a while, unless one has arrived just now."""
        if not self.transport.is_closing() and not self.has_arrived():
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """The server ends: so does this connection, at once or after the answer to what has arrived on it."""
        if not self.is_idle:
            self.cycle.keep_alive = False
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE]
        elif not self._is_about_to_ask and not self.has_arrived():
            super().shutdown()

    def end(self) -> None:
        """The server has ended, and what was asked here is not answered yet."""
        refusal = RequestRefused("stopping", "this door is closing: ask again")
        if self.is_idle:
            self._close_idle(refusal)
        else:
            self._refuse(refusal)

    def send_400_response(self, msg: str) -> None:
        """Whatever this is, it is no request."""
        self._refuse(RequestRefused("malformed", "this is no HTTP request"))

    def _close_idle(self, refusal: RequestRefused) -> None:
        if not self.conn.trailing_data[0]:  # it has said nothing, so it is not told anything
            self.transport.close()
        else:
            self._refuse(refusal)

    def _refuse(self, refusal: RequestRefused) -> None:
        """Close the connection with a reason; without a word if an answer is under way already."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = error_response(self.scope["path"] if self.scope and not self.is_idle else "/", refusal)
            head = h11.Response(status_code=answer.status_code, headers=[*answer.raw_headers, CLOSE])
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the application still sends goes nowhere
        self.transport.close()


async def _no_room(scope: Scope, receive: Receive, send: Send) -> None:
    refusal = RequestRefused("overloaded", "too many connections are open: close some, or try again later")
    headers = {"connection": "close", "retry-after": RETRY_SECONDS}
    await error_response(scope["path"], refusal, headers)(scope, receive, send)
