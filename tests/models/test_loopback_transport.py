"""HTTP to a server on this machine, without httpx's own transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from local.models import loopback_transport
from local.models.loopback_transport import LoopbackTransport

BODY = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nHi\r\n1\r\n.\r\n0\r\n\r\n"
BEGINNING = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nHi\r\n"
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


@asynccontextmanager
async def server(serve: Callable[[int, Reader, Writer], Awaitable[None]]) -> AsyncIterator[httpx.URL]:
    """`serve(number, reader, writer)` has each connection, the first one number 1."""
    writers: list[Writer] = []

    async def met(reader: Reader, writer: Writer) -> None:
        writers.append(writer)
        await serve(len(writers), reader, writer)

    async with await asyncio.start_server(met, "127.0.0.1", 0) as listening:
        yield httpx.URL(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/api/chat")
        for writer in writers:
            writer.close()


async def answer(transport: LoopbackTransport, url: httpx.URL) -> bytes:
    response = await transport.handle_async_request(httpx.Request("POST", url, content=b"{}"))
    try:
        return await response.aread()
    finally:
        await response.aclose()


async def said(reader: Reader) -> None:
    await reader.readuntil(b"\r\n\r\n{}")


async def number_of_connections(saying_afterwards: bytes = b"") -> int:
    """How many are made for three calls, by a server that says something after each."""
    numbers = set()
    met = asyncio.Queue[None]()

    async def serve(number: int, reader: Reader, writer: Writer) -> None:
        while True:
            await said(reader)
            numbers.add(number)
            writer.write(BODY)
            if saying_afterwards:
                await met.get()
                writer.write(saying_afterwards)

    async with server(serve) as url:
        transport = LoopbackTransport(5.0)
        for _ in range(3):
            assert await answer(transport, url) == b"Hi."
            if saying_afterwards:
                met.put_nowait(None)
                await heard(transport)
        await transport.aclose()
    return len(numbers)


async def heard(transport: LoopbackTransport) -> None:
    """Wait until something has arrived on the connection that is kept."""
    (kept,) = transport._kept
    async with asyncio.timeout(5):
        while kept.is_usable:  # noqa: ASYNC110 what arrives unasked sets no event
            await asyncio.sleep(0)


async def test_a_connection_is_used_again() -> None:
    assert await number_of_connections() == 1


async def test_a_connection_on_which_the_server_has_said_something_unasked_is_not_used_again() -> None:
    assert await number_of_connections(TOO_LATE) == 3


async def test_a_connection_that_was_not_used_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_transport, "KEPT_SECONDS", 0.0)
    assert await number_of_connections() == 3


async def test_a_server_learns_that_its_answer_is_not_read_on() -> None:
    left = asyncio.Event()

    async def serve(number: int, reader: Reader, writer: Writer) -> None:
        await said(reader)
        writer.write(BEGINNING)
        assert await reader.read() == b""
        left.set()

    async with server(serve) as url, asyncio.timeout(5):
        transport = LoopbackTransport(5.0)
        response = await transport.handle_async_request(httpx.Request("POST", url, content=b"{}"))
        assert await anext(response.aiter_raw()) == b"Hi"
        await response.aclose()
        await left.wait()


async def test_where_nobody_listens_it_is_told_as_httpx_tells_it() -> None:
    async def serve(number: int, reader: Reader, writer: Writer) -> None:
        raise AssertionError

    async with server(serve) as url:
        pass
    with pytest.raises(httpx.ConnectError):
        await answer(LoopbackTransport(5.0), url)


async def test_an_answer_that_is_no_http_is_told_as_httpx_tells_it() -> None:
    async def serve(number: int, reader: Reader, writer: Writer) -> None:
        await said(reader)
        writer.write(b"220 mail.example ESMTP\r\n\r\n")

    async with server(serve) as url:
        with pytest.raises(httpx.RemoteProtocolError):
            await answer(LoopbackTransport(5.0), url)
