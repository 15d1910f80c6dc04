"""Users of other cells: two real APIs, each with its own users; `b` has a journal and a generator as well."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from local.api.cells import CellsConfig
from local.core.config import load
from local.core.data_dir import make_owner_token
from local.core.errors import ConfigError
from local.core.open_files import most_open_files
from local.core.secrets import SecretStore
from local.core.users import Users

KEY = "a-key-that-all-cells-share"


@dataclass
class TwoCells:
    """Cell `a` with the user ann, and cell `b` with bob; their APIs run in `stack`, that of `b` in `of_b`."""

    a: httpx.AsyncClient
    b: httpx.AsyncClient
    generator: Any
    tokens: dict[str, str]
    users_of_b: Users
    stack_of_b: AsyncExitStack

    def by(self, name: str) -> dict[str, str]:
        """The headers of a caller."""
        return {"authorization": f"Bearer {self.tokens[name]}"}


def put_cells(folder: Path, this: str, urls: dict[str, str], users: dict[str, list[str]]) -> None:
    """The settings and the key of one cell."""
    folder.mkdir()
    cells = {name: {"url": url, "users": users[name]} for name, url in urls.items()}
    (folder / "cells.yaml").write_text(yaml.safe_dump({"this": this, "key": "secret:cells", "cells": cells}))
    SecretStore(folder).set("cells", KEY)


@pytest.fixture
async def cells(tmp_path: Path, system_in: Any) -> AsyncIterator[TwoCells]:
    folders, users = {name: tmp_path / name for name in "ab"}, {"a": ["ann"], "b": ["bob"]}
    async with AsyncExitStack() as stack:
        listeners = {name: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for name in "ab"}
        urls = {name: f"http://127.0.0.1:{each.getsockname()[1]}" for name, each in listeners.items()}
        for name, folder in folders.items():
            put_cells(folder, name, urls, users)
        tokens = {user: Users(folders[name]).add(user) for name, there in users.items() for user in there}
        tokens |= {f"owner of {name}": make_owner_token(folder) for name, folder in folders.items()}
        a, b = (system_in(folders[name], listeners[name]) for name in "ab")
        of_b = await stack.enter_async_context(AsyncExitStack())
        for part in (b.journal(), b.host(b.generator, "generator")):
            await of_b.enter_async_context(part)
        clients = (
            await stack.enter_async_context(a.frontend(max_attachment_mb=1)),
            await of_b.enter_async_context(b.frontend()),
        )
        of_b.callback(listeners["b"].close)
        yield TwoCells(*clients, b.generator, tokens, Users(folders["b"]), of_b)


async def test_a_question_at_another_cell_is_answered_and_stopped_while_it_comes(
    cells: TwoCells, events_of: Any
) -> None:
    headers, asked = {**cells.by("bob"), "accept": "text/event-stream"}, {"query": "hold", "query_id": "q1"}
    async with cells.a.stream("POST", "/query", json=asked, headers=headers) as response:
        seen = []
        async for name, _, data in events_of(response):
            seen.append(name)
            if name == "token":  # the generator waits: nothing has been held back on the way
                cancelled = await cells.a.post("/query/q1/cancel", json={}, headers=cells.by("bob"))
                assert cancelled.status_code == 202
            if name == "response":
                assert (data["status"], data["answer"]) == ("cancelled", "Hi ")
                break
    assert seen.index("token") < seen.index("response")
    assert (await cells.b.get("/query/q1", headers=cells.by("bob"))).status_code == 200


async def test_a_browser_signs_in_and_out_at_another_cell(cells: TwoCells) -> None:
    page = {"origin": str(cells.a.base_url).rstrip("/")}
    invitation = cells.users_of_b.invite("bob")
    signed_in = await cells.a.post("/sign-in", json={"secret": invitation}, headers=page)
    assert (signed_in.status_code, signed_in.json()["user_id"]) == (200, "bob")
    key = {"x-local2-key": signed_in.json()["key"]}
    assert (await cells.a.post("/query", json={"query": "hello"}, headers={**key, **page})).json()[
        "status"
    ] == "answered"
    foreign = await cells.a.post("/query", json={"query": "hello"}, headers={**key, "origin": "http://evil.example"})
    silent = await cells.a.post("/query", json={"query": "hello"}, headers=key)
    assert (foreign.status_code, silent.status_code) == (403, 403)
    assert (await cells.a.get("/", headers={"accept": "text/html"})).status_code == 200
    assert (await cells.a.post("/sign-out", json={}, headers={**key, **page})).json() == {"signed_out": 1}
    assert (await cells.a.get("/sessions", headers=key)).status_code == 401


async def test_nobody_becomes_another_user_by_what_they_send(cells: TwoCells) -> None:
    passed_on = {"x-local2-cell": KEY}
    addressed = f"{cells.tokens['ann'].partition('@')[0]}@bob"
    for at, headers, status in (
        (cells.a, {"authorization": f"Bearer {addressed}"}, 401),
        (cells.a, {"authorization": "Bearer local2-made-up@bob"}, 401),
        (cells.a, {"x-local2-key": "made-up@bob", "cookie": "local2-1=x"}, 401),
        (cells.a, {**cells.by("ann"), "x-local2-cell": "not the key"}, 403),
        (cells.b, {**cells.by("bob"), "x-local2-cell": "not the key"}, 403),
        (cells.b, passed_on, 401),  # the same Unix user, who is the owner without it
        (cells.b, {**cells.by("owner of b"), **passed_on}, 403),
        (cells.a, cells.by("owner of b"), 401),
        (cells.a, {**cells.by("bob"), **passed_on}, 401),  # not passed on twice
        (cells.b, {**cells.by("bob"), **passed_on, "host": "a.example", "origin": "https://a.example"}, 200),
    ):
        assert (await at.get("/sessions", headers=headers)).status_code == status, headers
    for_bob = await cells.a.get("/sessions?user_id=bob", headers=cells.by("owner of a"))
    asks = await cells.a.post("/query", json={"query": "hello", "user_id": "bob"}, headers=cells.by("owner of a"))
    assert [each.json()["error"]["kind"] for each in (for_bob, asks)] == ["elsewhere", "elsewhere"]
    assert cells.generator.turns == {}


async def test_no_owner_signs_in_through_another_cell(cells: TwoCells) -> None:
    secret, page = {"secret": cells.tokens["owner of b"]}, {"origin": str(cells.b.base_url).rstrip("/")}
    assert (await cells.b.post("/sign-in", json=secret, headers={**page, "x-local2-cell": KEY})).status_code == 403
    assert (await cells.b.post("/sign-in", json=secret, headers=page)).status_code == 200


async def test_the_address_of_a_request_is_passed_on_as_it_is(cells: TwoCells) -> None:
    """So that no cell reads another address than the one that checked it."""
    request = f"POST /x/../sign-in HTTP/1.1\r\nhost: {cells.a.base_url.netloc.decode()}\r\n"
    request += f"authorization: Bearer {cells.tokens['bob']}\r\ncontent-type: application/json\r\nconnection: close\r\n"
    body = json.dumps({"secret": cells.tokens["bob"]})
    reader, writer = await asyncio.open_connection(cells.a.base_url.host, cells.a.base_url.port)
    writer.write(f"{request}content-length: {len(body)}\r\n\r\n{body}".encode())
    assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 404 ")
    writer.close()


async def test_files_arrive_at_another_cell_within_the_limits(cells: TwoCells) -> None:
    text = b"rivers " * 100_000

    async def pieces() -> AsyncIterator[bytes]:
        yield b'[{"session": {"session_id": "s9"}, "turns": ['
        yield b'{"query": "Hello", "answer": "Hi"}]}]'

    kept = await cells.a.post("/attachments?name=notes.txt", content=text, headers=cells.by("bob"))
    assert (kept.status_code, kept.json()["size"]) == (201, len(text))
    found = await cells.a.post("/sessions/import?preview=true", content=pieces(), headers=cells.by("bob"))
    assert (found.status_code, found.json()["turns"]) == (200, 1), found.text
    large = await cells.a.post("/attachments?name=x", content=b"0" * (3 << 19), headers=cells.by("bob"))
    unknown = {"authorization": "Bearer local2-made-up@bob"}
    refused = await cells.a.post("/attachments?name=x", content=text, headers=unknown)
    assert (large.status_code, refused.status_code) == (413, 401)


async def test_a_cell_that_is_gone_is_named_at_once(cells: TwoCells) -> None:
    await cells.stack_of_b.aclose()
    began = time.monotonic()
    asked = await cells.a.post("/query", json={"query": "hello"}, headers=cells.by("bob"))
    secret = {"secret": cells.tokens["bob"]}
    for answer in (
        asked,
        await cells.a.post("/sign-in", json=secret),
        await cells.a.get("/health", headers=cells.by("bob")),
    ):
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "cell b, where this user lives, does not answer" in answer.json()["error"]["message"]
    openai = await cells.a.get("/v1/models", headers=cells.by("bob"))
    assert (openai.status_code, openai.json()["error"]["type"]) == (503, "server_error")
    assert (await cells.a.get("/v1/models", headers=cells.by("ann"))).status_code == 200
    assert time.monotonic() - began < 5


async def test_only_what_concerns_the_other_cell_is_sent_and_a_client_that_leaves_ends_it(
    tmp_path: Path, system_in: Any
) -> None:
    heads, ended = list[str](), asyncio.Event()

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A cell that knows everybody, and streams an event and then nothing."""
        for answer in (b"content-length: 2\r\n\r\n{}", b"content-type: text/event-stream\r\n\r\ndata: 1\n\n"):
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
            writer.write(b"HTTP/1.1 200 OK\r\n" + answer)
        await reader.read()
        ended.set()
        writer.close()

    async with await asyncio.start_server(other, "127.0.0.1", 0) as server:
        urls = {"a": "http://127.0.0.1:1", "b": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
        put_cells(tmp_path / "a", "a", urls, {"a": [], "b": ["bob"]})
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with system_in(tmp_path / "a", listener).frontend() as client:
                headers = {
                    "authorization": "Bearer local2-x@bob", "cookie": "bank=1; local2-8765=half", "te": "trailers",
                    "x-forwarded-for": "10.0.0.9", "via": "2 proxy", "last-event-id": "7", "expect": "100-continue",
                }  # fmt: skip
                async with client.stream("GET", "/events?subject=tool.%2A", headers=headers) as response:
                    assert await anext(response.aiter_raw()) == b"data: 1\n\n"
                async with asyncio.timeout(10):
                    await ended.wait()
    line, *fields = heads[-1].rstrip().split("\r\n")
    sent = dict(field.split(": ", 1) for field in fields)
    assert line == "get /events?subject=tool.%2a http/1.1"
    assert (sent["x-local2-cell"], sent["via"], sent["last-event-id"]) == (KEY, "1.1 local2", "7")
    assert (sent["cookie"], sent["host"]) == ("local2-8765=half", urls["b"].removeprefix("http://"))
    assert sent.keys().isdisjoint({"te", "expect"})


async def test_a_sign_in_does_not_wait_for_a_cell_that_hangs(
    tmp_path: Path, system_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.api.cells.CHECK_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as listener:
        urls = {"a": "http://127.0.0.1:1", "b": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        put_cells(tmp_path / "a", "a", urls, {"a": [], "b": ["bob"]})
        async with system_in(tmp_path / "a", listener).frontend() as client, asyncio.timeout(20):
            answer = await client.post("/sign-in", json={"secret": "made-up@bob"})
    assert answer.status_code == 503 and "does not answer" in answer.json()["error"]["message"]


async def test_requests_that_are_passed_on_leave_files_for_the_others(
    tmp_path: Path, system_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.api.server.OTHER_FILES", most_open_files() - 8)
    monkeypatch.setattr("local.api.server.ConnectionLimit.least", 1)
    come = asyncio.Queue[asyncio.StreamWriter]()  # to a cell that does not answer
    async with await asyncio.start_server(lambda _, writer: come.put_nowait(writer), "127.0.0.1", 0) as server:
        urls = {"a": "http://127.0.0.1:1", "b": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
        put_cells(tmp_path / "a", "a", urls, {"a": [], "b": ["bob"]})
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with system_in(tmp_path / "a", listener).frontend() as client, asyncio.timeout(20):
                headers = {"authorization": "Bearer made-up@bob"}
                held = [asyncio.create_task(client.get("/sessions", headers=headers)) for _ in range(4)]
                writers = [await come.get() for _ in held]
                refused = await client.get("/sessions", headers=headers)
                assert refused.json()["error"]["kind"] == "overloaded"
                for writer in writers:
                    writer.close()
                await asyncio.gather(*held)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"this": "c"}, "this: 'c' is none of the cells; expected one of a, b"),
        ({"key": None}, "key: is missing"),
        ({"cells": {"a": {"url": "http://a", "users": ["bob"]}, "b": {"url": "http://b", "users": ["bob"]}}}, "bob"),
        ({"cells": {"a": {"url": "a:8765"}}}, "url"),
    ],
)
def test_a_fault_in_the_settings_is_named(tmp_path: Path, changed: dict[str, object], fault: str) -> None:
    there = {"this": "a", "key": "secret:cells", "cells": {"a": {"url": "http://a"}, "b": {"url": "http://b"}}}
    (tmp_path / "cells.yaml").write_text(json.dumps({**there, **changed}))
    with pytest.raises(ConfigError) as refused:
        load("cells", CellsConfig, [tmp_path])
    assert fault in str(refused.value)
