"""HTTP/1.1 to a server on this machine: asyncio's own connections and h11, without a layer between the two.

A call of a model, which every turn waits for, takes httpx's own transport 1.0 ms of CPU time, and this one 0.5 [m].
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Self

import h11
import httpx

CLOSED_UNANSWERED = "Server disconnected without sending a response."  # as httpcore words it
MOST_KEPT = 20
KEPT_SECONDS = 5.0  # unused, as in httpx: what passes connections on to elsewhere may have lost one without a sign
READ_BYTES = 64 * 1024
MAX_HEAD = 100 * 1024


class LoopbackTransport(httpx.AsyncBaseTransport):
    """Makes as many connections as are used at once, and keeps some for later. Raises what httpx raises."""

    def __init__(self, connect_seconds: float) -> None:
        self._connect_seconds = connect_seconds
        self._kept: list[_Connection] = []  # the one that was used last comes last

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The head of the answer; its body is to be read to the end, or closed."""
        body = await request.aread()
        connection = self._take() or await self._connect(request.url)
        try:
            head = await connection.ask(request, body)
        except BaseException:
            connection.close()
            raise
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=_Body(connection, self._kept))

    async def aclose(self) -> None:
        """Close what is kept."""
        while self._kept:
            self._kept.pop().close()

    def _take(self) -> _Connection | None:
        while self._kept:
            connection = self._kept.pop()
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def _connect(self, url: httpx.URL) -> _Connection:
        try:
            async with asyncio.timeout(self._connect_seconds):
                return await _Connection.to(url.host, url.port or 80)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error


class _Reader(asyncio.StreamReader):
    """Counts the bytes that have arrived."""

    arrived = 0

    def feed_data(self, data: Any) -> None:
        """As in `StreamReader`."""
        self.arrived += len(data)
        super().feed_data(data)


class _Connection:
    """One connection, for one call at a time."""

    def __init__(self, reader: _Reader, transport: asyncio.Transport, writer: asyncio.StreamWriter) -> None:
        self._reader, self._transport, self._writer = reader, transport, writer
        self._http = h11.Connection(h11.CLIENT, MAX_HEAD)
        self._read = 0  # bytes
        self._unused_since = 0.0

    @classmethod
    async def to(cls, host: str, port: int) -> Self:
        """A connection to that address. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        reader = _Reader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.create_connection(lambda: protocol, host, port)
        return cls(reader, transport, asyncio.StreamWriter(transport, protocol, reader, loop))

    @property
    def is_usable(self) -> bool:
        """Whether a further call can be made: the server has said nothing since the last one, nor closed it."""
        is_open = self._reader.exception() is None and not self._reader.at_eof()
        is_silent = self._reader.arrived == self._read
        return is_open and is_silent and time.monotonic() - self._unused_since < KEPT_SECONDS

    async def ask(self, request: httpx.Request, body: bytes) -> h11.Response:
        """Send a request, all of it at once, and wait for the head of its answer."""
        try:
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
            parts = (head, *((h11.Data(data=body),) if body else ()), h11.EndOfMessage())
            self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
            await self._writer.drain()
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        except OSError as error:
            raise httpx.WriteError(str(error)) from error
        while True:
            event = self._event()
            if isinstance(event, h11.Response):
                return event
            if event is h11.NEED_DATA:
                await self._hear()

    async def data(self) -> bytes:
        """As much of the body as has come, b"" at its end."""
        pieces = list[bytes]()
        while self._http.their_state is h11.SEND_BODY:
            event = self._event()
            if isinstance(event, h11.Data):
                pieces.append(event.data)
            elif event is h11.NEED_DATA:
                if pieces:
                    break
                await self._hear()
        return b"".join(pieces)

    def is_over(self) -> bool:
        """Whether the call is, so that the connection can be kept for another one."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        self._unused_since = time.monotonic()
        return True

    def close(self) -> None:
        """Give it up at once; a server that is still answering notices that."""
        self._transport.abort()

    def _event(self) -> object:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error

    async def _hear(self) -> None:
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError as error:
            raise httpx.ReadError(str(error)) from error
        if not data and self._http.their_state is h11.SEND_RESPONSE:
            raise httpx.RemoteProtocolError(CLOSED_UNANSWERED)
        self._read += len(data)
        self._http.receive_data(data)


class _Body(httpx.AsyncByteStream):
    """The body of one answer, while it comes."""

    def __init__(self, connection: _Connection, kept: list[_Connection]) -> None:
        self._connection, self._kept = connection, kept
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._connection.data():
            yield data

    async def aclose(self) -> None:
        """Keep the connection if the body was read to its end."""
        if self._is_closed:
            return
        self._is_closed = True
        if len(self._kept) < MOST_KEPT and self._connection.is_over():
            self._kept.append(self._connection)
        else:
            self._connection.close()
