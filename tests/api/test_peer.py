"""The holder of the other end of a connection, on real sockets, for each way in which a kernel reports it."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - another user may not read this Python, which would import it now
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from local.api import server as peer
from local.api.server import (
    Address,
    HeldSocket,
    NotTold,
    Peer,
    is_held_by_own_process,
    socket_by_netlink,
    socket_by_proc,
)

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
NOBODY = 65534


@pytest.fixture(autouse=True)
def few_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """This one and its children: to look through all of a machine's takes seconds."""
    this = psutil.Process()
    monkeypatch.setattr(psutil, "process_iter", lambda: [this, *this.children()])


def by_processes(client: Address, server: Address) -> int | None:
    return os.geteuid() if is_held_by_own_process(client, server) else None


def by_netlink(client: Address, server: Address) -> int | None:
    return uid_of(socket_by_netlink(client, server))


def by_proc(client: Address, server: Address) -> int | None:
    return uid_of(socket_by_proc(client, server))


def uid_of(held: HeldSocket | None) -> int | None:
    return None if held is None else held.uid


WAYS = [by_netlink, by_proc, by_processes]


def is_to_be_had(way: Callable[[Address, Address], int | None]) -> bool:
    try:
        way(("127.0.0.1", 1), ("127.0.0.1", 2))
    except NotTold:
        return False
    return True


@contextmanager
def connection(kind: str) -> Iterator[tuple[socket.socket, Address, Address]]:
    """A client's socket, and both ends as the server sees them."""
    family, listens, connects = {
        "v4": (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        "v6": (socket.AF_INET6, "::1", "::1"),
        "v4 in v6": (socket.AF_INET6, "127.0.0.1", "::ffff:127.0.0.1"),
        "v6 for v4": (socket.AF_INET, "::", "127.0.0.1"),
    }[kind]
    with ExitStack() as stack:
        server_family = socket.AF_INET6 if ":" in listens else socket.AF_INET
        server = socket.create_server((listens, 0), family=server_family, dualstack_ipv6=listens == "::")
        listener = stack.enter_context(server)
        client = stack.enter_context(socket.socket(family))
        client.connect((connects, listener.getsockname()[1]))
        ours = stack.enter_context(listener.accept()[0])
        yield client, ours.getpeername()[:2], ours.getsockname()[:2]


@pytest.mark.parametrize("kind", ["v4", "v6", "v4 in v6", "v6 for v4"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_connection_of_our_own_is_known_in_every_way(way: Callable[..., int | None], kind: str) -> None:
    if not is_to_be_had(way):
        pytest.skip("this machine has no such way")
    with connection(kind) as (_, client, server):
        assert way(*plain(client, server)) == os.geteuid()
        found = Peer(client, server)
        await found.look_up()
        assert found.is_own_user is True


def plain(*ends: Address) -> list[Address]:
    return [(host.removeprefix("::ffff:"), port) for host, port in ends]


@pytest.mark.parametrize("way", WAYS)
def test_who_has_left_is_nobody(way: Callable[..., int | None]) -> None:
    """The kernel still has a row, without a process and in the name of root."""
    if not is_to_be_had(way):
        pytest.skip("this machine has no such way")
    with connection("v4") as (held, client, server):
        held.shutdown(socket.SHUT_WR)
        assert way(client, server) is None
        held.close()
        assert way(client, server) is None


@ROOT_ONLY
@pytest.mark.parametrize("way", WAYS)
def test_another_unix_user_is_another(way: Callable[..., int | None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:  # holds a connection as somebody else until it may go
            try:
                os.setuid(NOBODY)
                os.close(tell)
                with socket.create_connection(listener.getsockname()):
                    os.read(told, 1)
            finally:
                os._exit(0)
        ours, client = listener.accept()
        try:
            assert way(client, ours.getsockname()) == (None if way is by_processes else NOBODY)
        finally:
            ours.close()
            os.close(tell)
            os.close(told)
            os.waitpid(child, 0)


async def test_what_is_no_loopback_is_nobody_of_ours() -> None:
    for ends in [(None, None), (("192.168.1.7", 5), ("192.168.1.7", 80)), (("127.0.0.1", 5), ("10.0.0.1", 80))]:
        found = Peer(*ends)
        await found.look_up()
        assert found.is_own_user is False


async def test_where_the_kernel_tells_nothing_it_is_nobody_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> None:
        raise NotTold

    monkeypatch.setattr(peer, "socket_by_netlink", silent)
    monkeypatch.setattr(peer, "PROC_TABLES", (Path("/nowhere/tcp"), Path("/nowhere/tcp6")))
    monkeypatch.setattr(peer, "is_held_by_own_process", lambda *_: False)
    with connection("v4") as (_, client, server):
        found = Peer(client, server)
        await found.look_up()
        assert found.is_own_user is False


async def test_without_netlink_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    with connection("v4") as (_, client, server):
        with pytest.raises(NotTold):
            socket_by_netlink(client, server)
        found = Peer(client, server)
        await found.look_up()
        assert found.is_own_user is True


async def test_the_kernel_is_asked_once_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(peer, "socket_by_netlink", lambda *ends: asked.append(ends))
    found = Peer(("127.0.0.1", 5), ("127.0.0.1", 80))
    await found.look_up()
    await found.look_up()
    assert (found.is_own_user, len(asked)) == (False, 1)
