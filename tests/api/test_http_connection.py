"""Connections without a request, and more of them than there is room for."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from local.api import server
from local.api import server as http_connection
from local.core.open_files import most_open_files, raise_open_files

System = Any  # of conftest.py
SOON = 5.0


class Clients:
    """Opens connections, and closes them at the end."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[asyncio.StreamWriter] = []

    async def connect(self, said: bytes = b"") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open.append(writer)
        writer.write(said)
        await writer.drain()
        return reader

    def say_more(self, said: bytes) -> None:
        self._open[-1].write(said)

    def request(self, line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
        head = (line + b" HTTP/1.1", b"host: 127.0.0.1:%d" % self._port, b"content-type: application/json", *headers)
        return b"\r\n".join(head) + b"\r\n\r\n" + body

    def close(self) -> None:
        for writer in self._open:
            writer.transport.abort()


@pytest.fixture
async def clients(system: System) -> AsyncIterator[Clients]:
    clients = Clients(system.port)
    yield clients
    clients.close()


async def everything(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection is closed, which has to happen soon."""
    return await asyncio.wait_for(reader.read(), SOON)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(server, "TICK_SECONDS", 0.05)


def test_a_head_has_ten_seconds() -> None:
    assert http_connection.HEAD_SECONDS == 10


@pytest.mark.usefixtures("hurried", "client")
async def test_a_connection_that_says_nothing_is_closed(clients: Clients) -> None:
    assert await everything(await clients.connect()) == b""


@pytest.mark.usefixtures("hurried", "client")
async def test_a_head_that_does_not_end_in_time_is_408(clients: Clients) -> None:
    said = await everything(await clients.connect(b"GET /sessions HTTP/1.1\r\nhost: "))
    assert said.startswith(b"HTTP/1.1 408") and b"too_slow" in said


@pytest.mark.usefixtures("hurried", "client")
async def test_nor_may_the_second_request_of_a_connection_be_late(clients: Clients) -> None:
    reader = await clients.connect(clients.request(b"GET /sessions"))
    assert await asyncio.wait_for(reader.readline(), SOON) == b"HTTP/1.1 200 OK\r\n"
    clients.say_more(b"GET /sessions HTTP/1.1\r\n")
    assert b"HTTP/1.1 408" in await everything(reader)


@pytest.mark.usefixtures("hurried", "client")
async def test_an_answer_may_take_longer_than_a_head(clients: Clients, system: System) -> None:
    body = b'{"query": "hold on"}'
    asked = clients.request(b"POST /query", b"content-length: %d" % len(body), b"connection: close", body=body)
    reader = await clients.connect(asked)
    await asyncio.sleep(0.5)
    system.generator.release.set()
    assert (await everything(reader)).startswith(b"HTTP/1.1 200")


@pytest.mark.usefixtures("client")
async def test_two_ways_to_say_how_long_a_body_is_are_400_and_the_end(clients: Clients) -> None:
    headers = (b"content-length: 5", b"transfer-encoding: chunked")
    said = await everything(await clients.connect(clients.request(b"POST /query", *headers, body=b"0\r\n\r\n")))
    assert said.startswith(b"HTTP/1.1 400") and b"connection: close" in said and said.count(b"HTTP/1.1") == 1


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "OTHER_FILES", most_open_files() - 4)
    monkeypatch.setattr(http_connection.ConnectionLimit, "least", 4)


async def test_more_connections_than_files_close_those_that_are_idle_for_longest(
    narrow: None, client: httpx.AsyncClient, clients: Clients, caplog: pytest.LogCaptureFixture
) -> None:
    idle = [await clients.connect() for _ in range(20)]
    assert (await client.get("/sessions")).status_code == 200
    for reader in idle[:15]:
        assert await everything(reader) == b""
    assert not idle[-1].at_eof()
    assert [record.levelname for record in caplog.records if "connections are open" in record.message] == ["WARNING"]


async def test_where_none_is_idle_the_newcomer_is_told(
    narrow: None, client: httpx.AsyncClient, clients: Clients, system: System
) -> None:
    body = b'{"query": "hold on"}'
    asked = clients.request(b"POST /query", b"content-length: %d" % len(body), body=body)
    held = [await clients.connect(asked) for _ in range(4)]
    async with asyncio.timeout(SOON):
        while len(system.generator.turns) < len(held):
            system.generator.heard.clear()
            await system.generator.heard.wait()
    refused = await client.get("/sessions")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "overloaded")
    assert refused.headers["retry-after"] and refused.headers["connection"] == "close"
    system.generator.release.set()
    for reader in held:
        assert await asyncio.wait_for(reader.readline(), SOON) == b"HTTP/1.1 200 OK\r\n"
    assert (await client.get("/sessions")).status_code == 200


@pytest.fixture
def limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_as_many_files_may_be_open_as_the_hard_limit_allows(limits: None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    raise_open_files()
    assert most_open_files() == min(hard, 65_536)
