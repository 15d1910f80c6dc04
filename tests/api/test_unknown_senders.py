"""The cost of requests before their sender is known, and the number of unfinished ones."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from local.api import security, server
from local.api.security import MAX_UNFINISHED, MAX_UNKNOWN, GuardMiddleware, GuardPolicy, Principal
from local.api.server import HeldSocket, Peer

HOST = {"host": "127.0.0.1:1", "content-type": "application/json", "content-length": "100"}
POLICY = GuardPolicy(frozenset({"127.0.0.1:1"}))


class Known:
    """Principals by the name that a request shows as its token."""

    async def of(self, headers: dict[str, str], _: object) -> Principal:
        if not (name := headers.get("authorization")):
            raise server.RequestRefused("unauthorized", "who asks?")
        return Principal(name)


class Client:
    """One request through the guard, whose body comes when `body` is set."""

    def __init__(self, guard: GuardMiddleware, path: str = "/query", address: str = "::1", **headers: str) -> None:
        self.body, self.status, self.said = asyncio.Event(), 0, b""
        raw = [(name.encode(), value.encode()) for name, value in {**HOST, **headers}.items()]
        scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "client": (address, 2)}
        self.done = asyncio.create_task(guard(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self.body.wait()
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.said += message.get("body", b"")


@pytest.fixture
def guard() -> GuardMiddleware:
    async def app(scope: Any, receive: Any, send: Callable[..., Any]) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"served"})

    return GuardMiddleware(app, POLICY, Known(), lambda path: path == "/sign-in")  # type: ignore[arg-type]


async def test_somebody_unknown_is_refused_before_the_body_has_come(guard: GuardMiddleware) -> None:
    client = Client(guard)
    await client.done
    assert (client.status, json.loads(client.said)["error"]["kind"]) == (401, "unauthorized")


async def test_one_sender_cannot_hold_all_with_bodies_that_never_end(guard: GuardMiddleware) -> None:
    held = [Client(guard, authorization="bob") for _ in range(MAX_UNFINISHED)]
    await asyncio.sleep(0)  # each has begun to read
    one_more, other = Client(guard, authorization="bob"), Client(guard, authorization="ann")
    for client in (one_more, other, *held):
        client.body.set()
    await asyncio.gather(*(client.done for client in (one_more, other, *held)))
    assert (one_more.status, json.loads(one_more.said)["error"]["kind"]) == (503, "overloaded")
    assert {client.status for client in (other, *held)} == {200}
    again = Client(guard, authorization="bob")
    again.body.set()
    await again.done
    assert again.status == 200


def signing_in(guard: GuardMiddleware, address: str, **headers: str) -> Client:
    return Client(guard, "/sign-in", address, **headers)


@pytest.mark.parametrize("other", ["192.0.2.1", "192.0.2.2"])
async def test_half_sent_bodies_of_unknown_callers_keep_nobody_from_signing_in(
    guard: GuardMiddleware, other: str
) -> None:
    held = [signing_in(guard, "192.0.2.1") for _ in range(MAX_UNKNOWN)]
    await asyncio.sleep(0)  # each has begun to read
    client = signing_in(guard, other)
    await held[0].done
    assert (held[0].status, json.loads(held[0].said)["error"]["kind"]) == (408, "too_slow")
    for each in (client, *held[1:]):
        each.body.set()
    await asyncio.gather(*(each.done for each in (client, *held)))
    assert {each.status for each in (client, *held[1:])} == {200}


async def test_one_address_gives_way_before_another_and_an_ipv6_network_is_one(guard: GuardMiddleware) -> None:
    first = signing_in(guard, "192.0.2.1")
    held = [signing_in(guard, f"2001:db8::{number:x}") for number in range(MAX_UNKNOWN)]
    await held[0].done
    assert held[0].status == 408
    for each in (first, *held[1:]):
        each.body.set()
    await asyncio.gather(*(each.done for each in (first, *held)))
    assert {each.status for each in (first, *held[1:])} == {200}


async def test_two_hundred_users_behind_one_address_sign_in_at_once(guard: GuardMiddleware) -> None:
    clients = [signing_in(guard, "192.0.2.1") for _ in range(200)]
    await asyncio.sleep(0)  # each has begun to read
    for each in clients:
        each.body.set()
    await asyncio.gather(*(each.done for each in clients))
    assert {each.status for each in clients} == {200}


async def test_the_body_of_an_unknown_caller_is_small_and_comes_at_once(
    guard: GuardMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = signing_in(guard, "192.0.2.1", **{"content-length": "4097"})
    large.body.set()
    await large.done
    assert large.status == 413
    monkeypatch.setattr(security, "UNKNOWN_SECONDS", 0.0)
    slow = signing_in(guard, "192.0.2.1")
    await slow.done
    assert slow.status == 408


async def test_for_another_unix_user_no_processes_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "socket_by_netlink", lambda *_: HeldSocket(uid=65534, inode=7))
    monkeypatch.setattr(server, "contained_processes", lambda: pytest.fail("looked through all processes"))
    peer = Peer(("127.0.0.1", 2), ("127.0.0.1", 1))
    await peer.look_up()
    assert peer.is_own_user is False


async def test_connections_that_come_at_once_share_a_look_at_the_processes_that_began_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, has_begun, may_end = list[int](), threading.Event(), threading.Semaphore(0)
    sandboxes = server.SandboxLook()

    def look() -> set[int]:
        begun.append(len(begun))
        has_begun.set()
        may_end.acquire()
        return {begun[-1]}

    monkeypatch.setattr(server, "contained_processes", look)
    first = [asyncio.create_task(sandboxes.seen()) for _ in range(3)]
    await asyncio.to_thread(has_begun.wait)
    later = [asyncio.create_task(sandboxes.seen()) for _ in range(3)]
    may_end.release(2)
    assert [await each for each in (*first, *later)] == [{0}] * 3 + [{1}] * 3


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_from_another_port_of_this_machine_is_foreign(site: str) -> None:
    with pytest.raises(server.RequestRefused, match="other sites"):
        POLICY.check("POST", "/query", {**HOST, "sec-fetch-site": site})
