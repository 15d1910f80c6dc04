"""HTTP to a server on this machine: what becomes of its connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from local.models.loopback_transport import LoopbackTransport

Say = Callable[[asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHi"
SECONDS = 10.0
Until = Callable[[Callable[[], object]], Awaitable[None]]


class Server:
    """Answers each request with `say`; `connections` counts those that were made, `ended` is set when one has ended."""

    def __init__(self, say: Say) -> None:
        self._say, self.connections, self.asked, self.ended = say, 0, list[bytes](), asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.asked.append(await reader.readuntil(b"\r\n\r\n"))
                await self._say(writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended.set()
            writer.close()


@asynccontextmanager
async def talking(say: Say) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    server = Server(say)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        base_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with (
            asyncio.timeout(SECONDS),
            httpx.AsyncClient(base_url=base_url, transport=LoopbackTransport()) as client,
        ):
            yield server, client


def saying(*answers: bytes) -> Say:
    left = iter(answers)

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(next(left))

    return say


async def test_a_connection_that_has_answered_is_used_again() -> None:
    async with talking(saying(OK, OK, OK)) as (server, client):
        assert [(await client.get("/api/tags")).text for _ in range(3)] == ["Hi"] * 3
    assert (server.connections, len(server.asked)) == (1, 3)
    assert server.asked[0].startswith(b"GET /api/tags HTTP/1.1\r\n")


async def test_requests_at_once_have_a_connection_each() -> None:
    both = asyncio.Barrier(2)

    async def say(writer: asyncio.StreamWriter) -> None:
        await both.wait()
        writer.write(OK)

    async with talking(say) as (server, client):
        answers = await asyncio.gather(client.get("/"), client.get("/"))
    assert ([answer.text for answer in answers], server.connections) == (["Hi", "Hi"], 2)


@pytest.mark.parametrize("more", [b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", b"nonsense"])
async def test_what_nobody_has_asked_for_is_no_answer_to_the_next_request(more: bytes) -> None:
    async with talking(saying(OK + more, OK)) as (server, client):
        assert [(await client.get("/")).text for _ in range(2)] == ["Hi", "Hi"]
    assert server.connections == 2


async def test_a_connection_that_the_server_says_it_closes_is_not_used_again() -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    async with talking(saying(closing, OK)) as (server, client):
        assert [(await client.get("/")).text for _ in range(2)] == ["Hi", "Hi"]
    assert server.connections == 2


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall of it")
        writer.write_eof()

    async with talking(say) as (_, client):
        assert (await client.get("/")).text == "all of it"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "disconnected without sending a response"),
        (b"HTTP/1.1 200", "disconnected without sending a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "without sending complete message body"),
        (b"no HTTP\r\n\r\n", "illegal status line"),
    ],
)
async def test_what_is_no_whole_answer_is_a_failure(said: bytes, why: str) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.write_eof()

    async with talking(say) as (_, client):
        with pytest.raises(httpx.RemoteProtocolError, match=why):
            await client.get("/")


async def test_who_leaves_an_answer_before_its_end_ends_the_connection() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", OK)) as (server, client):
        async with client.stream("GET", "/") as answer:
            assert await anext(answer.aiter_bytes()) == b"half"
        await server.ended.wait()
        assert (await client.get("/")).text == "Hi"


async def test_who_stops_waiting_for_an_answer_ends_the_connection() -> None:
    asked = asyncio.Event()

    async def say(writer: asyncio.StreamWriter) -> None:
        asked.set()

    async with talking(say) as (server, client):
        asking = asyncio.create_task(client.get("/"))
        await asked.wait()
        asking.cancel()
        await server.ended.wait()


async def test_a_server_waits_for_who_reads_slowly(until: Until) -> None:
    size, sent = 64 * 2**20, asyncio.Event()

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(64):
            writer.write(bytes(size // 64))
            await writer.drain()
        sent.set()

    async with talking(say) as (_, client), client.stream("GET", "/") as answer:
        [connection] = client._transport._open  # type: ignore[attr-defined]
        await until(lambda: not connection._transport.is_reading())
        assert not sent.is_set()
        assert sum([len(some) async for some in answer.aiter_bytes()]) == size


async def test_where_nobody_listens_no_connection_is_made() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
    async with httpx.AsyncClient(transport=LoopbackTransport()) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://127.0.0.1:{port}/")
