"""Invalid HTTP, invalid JSON and invalid tokens leave the API running, and the log without a traceback."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx
import pytest

from local.api import security as guard_middleware

System = Any  # of conftest.py

PATHS = ("/query", "/v1/chat/completions")
BODIES = (
    b"",
    b"{",
    b"nonsense",
    b"[]",
    b"7",
    b"null",
    b'"query"',
    b"\xff\xfe\x00",
    b'{"query": "\xff"}',
    b'{"query": "\\ud800"}',
    b'{"query": NaN}',
    b'{"query": -Infinity}',
    b'{"query": 1e999}',
    b'{"query": ' + b"9" * 5000 + b"}",
    b'{"query": "a", "query": "b"}',
    b'{"query": "a"} trailing',
    b'{"query": {"a": ' * 40 + b"1" + b"}}" * 40,
    b"[" * 100_000,
    b'{"query":' * 50_000,
    b'{"query": true}',
    b'{"query": ["a"]}',
    b'{"query": "\\u0000", "query_id": "\\u0000"}',
    b'{"query": "a", "history": []}',
    b'{"query": "a", "query_id": {"$ne": null}}',
    b'{"messages": "hello", "model": "m"}',
    b'{"messages": [null], "model": "m"}',
    b'{"messages": [{"role": "root", "content": "x"}], "model": "m"}',
    b'{"messages": [{"role": "user", "content": {"a": 1}}], "model": "m"}',
    b'{"messages": [{"role": "user", "content": "x"}], "model": "m", "n": 99999999999999999999}',
    b'{"messages": [{"role": "user", "content": "x"}], "model": "m", "stream": {}}',
)
# A client hears nothing for so many rounds before it hangs up. Both share a loop: what keeps the frontend from
# answering, such as a busy machine, makes a round longer, where a client with a clock would have given up first.
PATIENCE_ROUNDS, ROUND_SECONDS = 25, 0.02
JSON = b"content-type: application/json\r\n"


def posts(port: int) -> list[bytes]:
    host = b"host: 127.0.0.1:%d\r\n" % port
    return [
        b"POST %s HTTP/1.1\r\n%s%sconnection: close\r\ncontent-length: %d\r\n\r\n%s"
        % (path.encode(), host, JSON, len(body), body)
        for path in PATHS
        for body in BODIES
    ]


def oddities(port: int) -> list[bytes]:
    host = b"host: 127.0.0.1:%d\r\n" % port
    chunked = b"POST /query HTTP/1.1\r\n" + host + JSON + b"transfer-encoding: chunked\r\n\r\n"
    lines = (
        b"\r\n\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
        b"GET  / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + host + b"\r\n", b"GET / HTTP/1.0\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n",
        b"GET / HTTP/1.1\r\nhost : x\r\n\r\n", b"GET / HTTP/1.1\r\n" + host + b"a\x00b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"x: y\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"POST /query HTTP/1.1\r\n" + host + JSON + b"content-length: -1\r\n\r\n",
        b"POST /query HTTP/1.1\r\n" + host + JSON + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /query HTTP/1.1\r\n" + host + JSON + b"content-length: 99999999999\r\n\r\n{}",
        b"POST /query HTTP/1.1\r\n" + host + JSON + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        b"POST /query HTTP/1.1\r\n" + host + JSON + b"expect: 100-continue\r\ncontent-length: 9999999\r\n\r\n",
        chunked + b"zz\r\n{}\r\n", chunked + b"-1\r\n", chunked + b"2\r\n{}", chunked + b"2\r\n{}\r\n0\r\nx\r\n\r\n",
        chunked + b"ffffffffffffffffffff\r\n{}", chunked + b"2;" + b"e" * 50_000 + b"\r\n{}\r\n0\r\n\r\n",
        b"GET /events HTTP/1.1\r\n" + host + b"upgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        b"GET /query/%00 HTTP/1.1\r\n" + host + b"\r\n", b"GET /query/%ff%fe HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /../../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b"GET //evil/ HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + host + b"\r\n", b"TRACE / HTTP/1.1\r\n" + host + b"\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nhost: evil.example\r\n\r\n",
        b"BREW /query HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /events?subject=%0a%0d HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /query/q/events HTTP/1.1\r\n" + host + b"last-event-id: \xff-1\r\n\r\n",
        b"POST /query HTTP/1.1\r\n" + host + JSON + b"content-length: 2\r\n\r\n{}GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"\r\n\x00\x01garbage after a good request\r\n\r\n",
    )  # fmt: skip
    return list(lines)


def garbage(count: int) -> list[bytes]:
    dice = random.Random(7)
    heads = (b"", b"GET ", b"POST /query HTTP/1.1\r\n", b"POST /query HTTP/1.1\r\nhost: ")
    return [dice.choice(heads) + dice.randbytes(dice.randint(1, 400)) + b"\r\n\r\n" for _ in range(count)]


async def shout(port: int, request: bytes) -> bytes:
    """Send data and return the answer; a client without an answer for a moment hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        writer.write(request)
        async with asyncio.timeout(90):
            while part := await heard(reader):
                answer += part
    except (ConnectionError, TimeoutError):
        pass  # what matters is what came back before
    finally:
        writer.transport.abort()
    return answer


async def heard(reader: asyncio.StreamReader) -> bytes:
    reading = asyncio.create_task(reader.read(65536))
    for _ in range(PATIENCE_ROUNDS):
        if reading in (await asyncio.wait({reading}, timeout=ROUND_SECONDS))[0]:
            return await reading
    reading.cancel()
    raise TimeoutError


async def test_hostile_requests_leave_it_alive(
    client: httpx.AsyncClient, system: System, caplog: pytest.LogCaptureFixture
) -> None:
    requests = [*posts(system.port), *oddities(system.port), *garbage(30)]
    refused = 0
    for begin in range(0, len(requests), 20):
        batch = requests[begin : begin + 20]
        for request, answer in zip(
            batch, await asyncio.gather(*(shout(system.port, one) for one in batch)), strict=True
        ):
            for part in answer.split(b"HTTP/1.1 ")[1:]:
                assert not part.startswith(b"500"), (request[:200], part)
                if part[:1] in b"45":
                    refused += 1
                    _, _, body = part.partition(b"\r\n\r\n")
                    assert json.loads(body)["error"]["message"], (request[:200], part)
    assert refused >= 110
    assert (await client.post("/query", json={"query": "hello"})).json()["answer"] == "Hi there."
    assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


async def test_a_body_that_is_not_what_it_should_be_is_the_clients_fault(client: httpx.AsyncClient) -> None:
    for body in [body for body in BODIES if body]:
        refused = await client.post("/query", content=body, headers={"content-type": "application/json"})
        assert refused.status_code in (400, 422)
        assert len(refused.json()["error"]["message"]) > 10


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_a_mebibyte_is_413(client: httpx.AsyncClient, declared: bool) -> None:
    size = 1024 * 1024 + 1

    async def chunks() -> Any:
        for _ in range(20):
            yield b"x" * (size // 16)

    content = b"x" * size if declared else chunks()
    refused = await client.post("/query", content=content, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (413, "too_large")


async def test_a_body_that_is_no_json_is_415(client: httpx.AsyncClient) -> None:
    refused = await client.post("/query", content=b'{"query": "hello"}', headers={"content-type": "text/plain"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (415, "unsupported_media_type")


async def test_the_first_of_two_headers_counts(system: System, client: httpx.AsyncClient) -> None:
    lines = b"host: 127.0.0.1:%d\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n" % system.port
    answer = await shout(system.port, b"POST /query HTTP/1.1\r\n" + lines + JSON + b"\r\n{}")
    assert answer.startswith(b"HTTP/1.1 415")


async def test_a_body_that_does_not_arrive_in_time_is_408(
    system: System, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_middleware, "BODY_SECONDS", 0.01)
    monkeypatch.setattr(guard_middleware, "DISCARD_SECONDS", 0.01)
    host = b"host: 127.0.0.1:%d\r\n" % system.port
    answer = await shout(system.port, b"POST /query HTTP/1.1\r\n" + host + JSON + b"content-length: 9\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408")


async def test_other_sites_are_403(client: httpx.AsyncClient) -> None:
    for header in [{"host": "evil.example"}, {"origin": "http://evil.example"}]:
        refused = await client.post("/query", json={"query": "hello"}, headers=header)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
        assert "access-control-allow-origin" not in refused.headers


async def test_a_body_that_stops_half_way_frees_its_request(client: httpx.AsyncClient, system: System) -> None:
    request = b"POST /query HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n%scontent-length: 100\r\n\r\n{" % (system.port, JSON)
    _, writer = await asyncio.open_connection("127.0.0.1", system.port)
    writer.write(request)
    await writer.drain()
    writer.close()
    assert (await client.get("/sessions")).status_code == 200
