"""The end of a server: what has arrived by then is answered, and what has not been accepted waits for the next one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.types import Receive, Scope, Send

from local.api import server
from local.api import server as http_connection
from local.api.server import ConnectionLimit, HttpConnection, serving

SECONDS = 5.0
ROUNDS = 8  # of the loop, in which a connection is accepted, made and read


class Frontend:
    """A listening socket and those who come to it, without asyncio: so that what they say lies unread."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.clients: list[socket.socket] = []

    def connect(self) -> socket.socket:
        self.clients.append(socket.create_connection(self.listener.getsockname(), SECONDS))
        return self.clients[-1]

    def close(self) -> None:
        for each in (self.listener, *self.clients):
            each.close()


def ask(client: socket.socket, path: str = "/") -> None:
    client.sendall(b"GET %s HTTP/1.1\r\nhost: door\r\n\r\n" % path.encode())


def answer(client: socket.socket) -> bytes:
    """All that comes until the end. Raises `ConnectionError` where the connection was cut."""
    said = b""
    while more := client.recv(65_536):
        said += more
    return said


@pytest.fixture
def frontend() -> Iterator[Frontend]:
    frontend = Frontend()
    yield frontend
    frontend.close()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Says hello; to /slow never."""
    if scope["path"] == "/slow":
        await asyncio.Event().wait()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


async def greeted(client: socket.socket) -> None:
    """One request that is answered while the server runs."""
    await asyncio.to_thread(ask, client)
    said = b""
    while not said.endswith(b"hello"):
        said += await asyncio.to_thread(client.recv, 65_536)


async def test_what_has_arrived_on_an_idle_connection_at_the_end_is_answered(frontend: Frontend) -> None:
    used, fresh = frontend.connect(), frontend.connect()

    def at_the_end() -> None:
        ask(used)
        ask(fresh)

    async with serving(app, frontend.listener.dup(), at_the_end):
        await greeted(used)
        await greeted(frontend.connect())  # fresh has been accepted before it
    for client in (used, fresh):
        said = await asyncio.to_thread(answer, client)
        assert said.startswith(b"HTTP/1.1 200") and b"connection: close" in said and said.endswith(b"hello")


async def test_a_connection_on_which_nothing_comes_is_closed_at_once(
    frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 60.0)
    monkeypatch.setattr(http_connection, "NEW_SECONDS", 0.0)
    used, fresh = frontend.connect(), frontend.connect()
    async with serving(app, frontend.listener.dup(), lambda: None):
        await greeted(used)
        await greeted(frontend.connect())
    assert [await asyncio.to_thread(answer, client) for client in (used, fresh)] == [b"", b""]


async def test_who_has_come_just_now_may_still_ask(frontend: Frontend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 60.0)
    used, fresh = frontend.connect(), frontend.connect()

    def ask_once_the_end_has_begun() -> None:
        answer(used)
        ask(fresh)

    async with serving(app, frontend.listener.dup(), lambda: None):
        await greeted(used)
        await greeted(frontend.connect())
        asking = asyncio.create_task(asyncio.to_thread(ask_once_the_end_has_begun))
    await asking
    assert (await asyncio.to_thread(answer, fresh)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("rounds", range(ROUNDS))
async def test_who_comes_at_the_end_is_answered_by_this_server_or_by_the_next(frontend: Frontend, rounds: int) -> None:
    async with serving(app, frontend.listener.dup(), lambda: None):
        client = frontend.connect()
        ask(client)
        for _ in range(rounds):
            await asyncio.sleep(0)
    async with serving(app, frontend.listener.dup(), lambda: None):
        said = await asyncio.to_thread(client.recv, 65_536)
    assert said.startswith(b"HTTP/1.1 200")


async def test_who_is_not_answered_in_time_is_told_so(frontend: Frontend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 0.1)
    slow, half = frontend.connect(), frontend.connect()
    half.sendall(b"GET / HTTP/1.1\r\nho")
    async with serving(app, frontend.listener.dup(), lambda: None):
        ask(slow, "/slow")
        await greeted(frontend.connect())
    for client in (slow, half):
        said = await asyncio.to_thread(answer, client)
        assert said.startswith(b"HTTP/1.1 503") and b"stopping" in said and b"retry-after" in said


async def test_who_leaves_at_the_end_holds_nothing_up(frontend: Frontend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 60.0)
    client = frontend.connect()
    async with serving(app, frontend.listener.dup(), client.close):
        await greeted(client)
    with suppress(OSError):
        assert client.recv(1) == b""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[HttpConnection]:
    """The server's ends of the connections, in the order in which they are made."""
    made, connection_made = list[HttpConnection](), HttpConnection.connection_made

    def note(connection: HttpConnection, transport: asyncio.Transport) -> None:
        made.append(connection)
        connection_made(connection, transport)

    monkeypatch.setattr(HttpConnection, "connection_made", note)
    return made


async def test_a_request_that_a_process_which_was_held_up_finds_is_answered_before_its_connection_is_called_idle(
    frontend: Frontend, made: list[HttpConnection]
) -> None:
    async with serving(app, frontend.listener.dup(), lambda: None):
        used, fresh = frontend.connect(), frontend.connect()
        await greeted(used)
        await greeted(frontend.connect())
        for client in (used, fresh):
            ask(client)
        late = asyncio.get_running_loop().time() + 60.0
        for connection in made[:2]:  # what is due when the loop runs again, before it has read anything
            connection.timeout_keep_alive_handler()
            connection.look(late)
            connection.look(late + 60.0)
        said = [await asyncio.to_thread(client.recv, 65_536) for client in (used, fresh)]
    assert all(each.startswith(b"HTTP/1.1 200") for each in said)


async def test_room_is_not_made_by_closing_a_connection_on_which_a_request_has_arrived(
    frontend: Frontend, made: list[HttpConnection]
) -> None:
    async with serving(app, frontend.listener.dup(), lambda: None):
        asking, idle = frontend.connect(), frontend.connect()
        await greeted(frontend.connect())
        oldest, second, newcomer = made
        ask(asking)
        limit = ConnectionLimit()
        limit.most = 2
        assert limit.has_room([oldest, second, newcomer], newcomer)
        assert (oldest.transport.is_closing(), second.transport.is_closing()) == (False, True)
        assert (await asyncio.to_thread(asking.recv, 65_536)).startswith(b"HTTP/1.1 200")
    assert await asyncio.to_thread(answer, idle) == b""
