"""A query for which LoCAL2 itself would take too long is refused before it is accepted, and only that."""

from __future__ import annotations

import socket
import sys
from typing import Any

import httpx
import pytest

from local.api import server
from local.queries.asker import FEW

System = Any  # of conftest.py

MANY = 1000  # far more than it takes


async def ask(client: httpx.AsyncClient, number: int) -> httpx.Response:
    return await client.post("/query", json={"query": "queued", "query_id": f"q{number}", "wait": False})


async def test_what_would_wait_too_long_is_refused_and_what_was_accepted_never(system: System) -> None:
    async with system.frontend(max_wait_seconds=0.5) as client:
        await system.generator.beats_heard(client)
        accepted = 0
        while (answer := await ask(client, accepted)).status_code == 202:
            accepted += 1
            assert accepted < MANY
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
        error = answer.json()["error"]
        assert error["kind"] == "too_many_queries" and "ask again in" in error["message"]

        chat = {"model": "local2", "messages": [{"role": "user", "content": "hello"}]}
        as_openai = await client.post("/v1/chat/completions", json=chat)
        assert (as_openai.status_code, as_openai.json()["error"]["type"]) == (429, "rate_limit_error")
        assert as_openai.json()["error"]["code"] == "too_many_queries" and as_openai.headers["retry-after"]
        assert set(system.generator.turns) == {f"q{number}" for number in range(accepted)}  # and nothing of these two

        assert (await ask(client, 0)).status_code == 202  # it is the same query
        for number in range(accepted):
            await client.post(f"/query/q{number}/cancel")
            assert (await client.get(f"/query/q{number}")).status_code == 200
        while (answer := await ask(client, accepted)).status_code == 429:
            pass  # the last of the cancelled are about to end
        assert answer.status_code == 202


async def test_what_was_accepted_is_never_refused_by_the_next_process_however_busy_that_is(system: System) -> None:
    async with system.frontend(max_wait_seconds=0.5) as client:
        assert (await ask(client, 0)).status_code == 202
    async with system.frontend(max_wait_seconds=0.5) as client:
        await system.generator.beats_heard(client)
        number = 1
        while (await ask(client, number)).status_code == 202:
            number += 1
            assert number < MANY
        assert (await ask(client, 0)).status_code == 202
        assert (await ask(client, number)).status_code == 429


async def test_what_has_waited_for_too_long_to_be_read_is_refused_but_for_a_few(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few come after this process was frozen or started again, many where it is too slow for what is asked."""
    monkeypatch.setattr(server, "seconds_since_data", lambda _: 60.0)
    async with system.frontend() as client:
        asked = [await client.post("/query", json={"query": "hello"}) for _ in range(FEW + 1)]
        chat = {"model": "local2", "messages": [{"role": "user", "content": "hello"}]}
        as_openai = await client.post("/v1/chat/completions", json=chat)
    assert [answer.status_code for answer in asked] == [200] * FEW + [429]
    assert (asked[-1].json()["error"]["kind"], as_openai.json()["error"]["code"]) == ("too_many_queries",) * 2
    assert int(as_openai.headers["retry-after"]) >= 1
    assert len(system.generator.turns) == FEW


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not tell")
def test_the_kernel_tells_how_long_data_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        client.send(b"GET")
        with listener.accept()[0] as ours:
            while not (first := server.seconds_since_data(ours)):
                pass
            assert server.seconds_since_data(ours) >= first and first < 60
