"""HTTP/1.1 to a model server on this machine: h11 on a bare connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import h11
import httpx

CONNECT_SECONDS = 5.0
MAX_HEAD_BYTES = 100 * 1024  # as httpcore has it; h11's own limit is less than some servers send
MAX_UNREAD_BYTES = 256 * 1024  # of a body; then the server has to wait
MAX_IDLE, IDLE_SECONDS = 20, 5.0  # connections that are kept to be used again, and for how long
CLOSED_UNANSWERED = "Server disconnected without sending a response."  # as httpcore words it


class LoopbackTransport(httpx.AsyncBaseTransport):
    """The connections to one server on this machine, without TLS. One that has answered is used again.

    In the place of httpx's own, whose pool, locks and cancel scopes take half of a call's processor time [m]: what they
    are for, such as proxies, TLS and limits of connections, is nothing that such a server has.
    """

    def __init__(self) -> None:
        self._open: set[LoopbackConnection] = set()
        self._idle: list[LoopbackConnection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer as soon as it begins. Raises `httpx.TransportError`."""
        content = await request.aread()
        connection = self._kept() or await self._connected(request.url)
        try:
            head = await connection.ask(request, content)
        except BaseException:
            connection.close()
            raise
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=LoopbackBody(self, connection))

    async def aclose(self) -> None:
        """Close every connection."""
        for connection in list(self._open):
            connection.close()

    def keep(self, connection: LoopbackConnection) -> None:
        """An answer was read to its end: another one may come over that connection."""
        if len(self._idle) < MAX_IDLE and connection.may_go_on():
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> LoopbackConnection | None:
        """The one that was used last, if that is not long ago."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh:
                return connection
            connection.close()
        return None

    async def _connected(self, url: httpx.URL) -> LoopbackConnection:
        connect = asyncio.get_running_loop().create_connection
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await connect(lambda: LoopbackConnection(self._open), url.host, url.port or 80)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection


class LoopbackConnection(asyncio.Protocol):
    """One connection, one answer at a time; `peers` are all that are open, this one among them."""

    _transport: asyncio.Transport

    def __init__(self, peers: set[LoopbackConnection]) -> None:
        self._peers = peers
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._news: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._unread = 0  # bytes
        self._idle_since: float | None = None
        self._has_ended = False

    @property
    def is_fresh(self) -> bool:
        """Whether another request can be sent, as the server has said nothing since the last answer."""
        now = asyncio.get_running_loop().time()
        return not self._has_ended and self._idle_since is not None and now - self._idle_since < IDLE_SECONDS

    def may_go_on(self) -> bool:
        """Whether the server keeps the connection after its answer; then it is idle from now on."""
        said_more, _ = self._parser.trailing_data
        is_done = self._parser.our_state is self._parser.their_state is h11.DONE
        if self._has_ended or said_more or not is_done:
            return False
        self._parser.start_next_cycle()
        self._idle_since = asyncio.get_running_loop().time()
        return True

    async def ask(self, request: httpx.Request, content: bytes) -> h11.Response:
        """The head of the answer. Raises `httpx.TransportError`."""
        self._idle_since = None
        head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        said = (self._parser.send(each) or b"" for each in (head, h11.Data(content), h11.EndOfMessage()))
        self._transport.write(b"".join(said))
        while not isinstance(event := await self.event(), h11.Response):
            pass  # such as "100 Continue"
        return event

    async def event(self) -> Any:
        """What h11 finds next in the answer. Raises `httpx.TransportError`."""
        while (event := self._next()) is h11.NEED_DATA:
            if self._error is not None:
                raise httpx.ReadError(str(self._error)) from self._error
            if self._has_ended:
                if self._parser.their_state is h11.SEND_RESPONSE:
                    raise httpx.RemoteProtocolError(CLOSED_UNANSWERED)
                self._parser.receive_data(b"")  # the end of a body without a length; any other one is cut off
            else:
                await self._more()
        return event

    def close(self) -> None:
        """Break off; the server hears of it."""
        self._has_ended = True
        self._transport.abort()  # now, also where the server does not take the rest of a request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peers.add(self)

    def data_received(self, data: bytes) -> None:
        if self._idle_since is not None:  # what nobody has asked for
            self.close()
            return
        self._parser.receive_data(data)
        self._unread += len(data)
        if self._unread > MAX_UNREAD_BYTES:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._has_ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._peers.discard(self)
        self._has_ended, self._error = True, error
        self._wake()

    def _next(self) -> Any:
        try:
            return self._parser.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error

    async def _more(self) -> None:
        if self._unread > MAX_UNREAD_BYTES:
            self._transport.resume_reading()
        self._unread = 0
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class LoopbackBody(httpx.AsyncByteStream):
    """The body of one answer; closed before its end, it closes the connection, and the server stops."""

    def __init__(self, transport: LoopbackTransport, connection: LoopbackConnection) -> None:
        self._transport, self._connection = transport, connection
        self._is_whole = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._connection.event(), h11.Data):
            yield bytes(event.data)
        self._is_whole = True
        self._transport.keep(self._connection)

    async def aclose(self) -> None:
        if not self._is_whole:
            self._connection.close()
