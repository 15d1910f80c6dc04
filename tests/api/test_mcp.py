"""`/mcp` of the real frontend, with the SDK's own client: the tools of `local2 mcp`, for each of what is theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from local.core.data_dir import make_owner_token
from local.core.users import Users

System = Any  # of conftest.py
HANDSHAKE = "legacy"
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
BOTH = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def connected(system: System, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=90) as http:
        transport = streamable_http_client(f"{system.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ["auto", HANDSHAKE])
async def test_a_question_is_asked_in_the_mode_of_nobody_there(system: System, mode: str) -> None:
    async with system.frontend(), connected(system, mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "ask", "search_memory", "list_conversations", "read_conversation",
        }  # fmt: skip
        told = (await client.call_tool("ask", {"question": "tool please", "conversation": "c1"})).structured_content
        failed = await client.call_tool("ask", {"question": "fail please"})
        missing = await client.call_tool("read_conversation", {"conversation": "nowhere"})
    assert (told["answer"], told["conversation"], told["tools"]) == ("Hi there.", "c1", ["dice"])
    [asked] = [turn for turn in system.generator.turns.values() if turn.query == "tool please"]
    assert asked.options.mode == "dontAsk"
    assert failed.is_error and "the model server went away" in failed.content[0].text
    assert missing.is_error and "there is no session nowhere" in missing.content[0].text


async def test_a_call_that_is_cancelled_has_its_query_stopped(system: System) -> None:
    async with system.frontend(), connected(system) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": "hold it"}))
        await system.generator.heard.wait()
        asking.cancel()
        [query_id] = system.generator.turns
        await system.generator.cancelled(query_id)


async def test_what_is_no_message_is_told_as_a_json_rpc_error(client: httpx.AsyncClient) -> None:
    for body, headers, status, said in [
        ("", {}, 400, "content-type: expected application/json"),
        ("", {"content-type": "application/json", **BOTH}, 400, "Parse error"),
        ("{", {"content-type": "application/json", **BOTH}, 400, "Parse error"),
        ("[]", {"content-type": "application/json", **BOTH}, 400, "JSON-RPC request"),
        ('{"jsonrpc": "2.0"}', {"content-type": "application/json", **BOTH}, 400, "JSON-RPC request"),
        ("{}", {"content-type": "application/json", "accept": "text/html"}, 406, "ccept"),
    ]:
        for version in ["2025-06-18", "2026-07-28"]:
            answer = await client.post("/mcp", content=body, headers={"mcp-protocol-version": version, **headers})
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
            told = answer.json()
            assert (told["jsonrpc"], told["id"]) == ("2.0", None)
            assert (
                told["error"]["code"] < 0 and said in told["error"]["message"] and "\n" not in told["error"]["message"]
            )


async def test_each_user_asks_as_that_user_and_sees_what_is_theirs(system: System) -> None:
    folder = system.journal_file.parent
    make_owner_token(folder)
    ann, eve = (Users(folder).add(name) for name in ("ann", "eve"))
    async with system.frontend():
        async with connected(system, ann) as client:
            told = await client.call_tool("ask", {"question": "hello", "conversation": "of-ann"})
            mine = await client.call_tool("read_conversation", {"conversation": "of-ann"})
        async with connected(system, eve) as client:
            others = await client.call_tool("read_conversation", {"conversation": "of-ann"})
    assert (told.structured_content["answer"], mine.structured_content["text"]) == ("Hi there.", "# hello\n")
    assert {trace.user_id for trace in system.generator.traces.values()} == {"ann"}
    assert others.is_error and "there is no session of-ann" in others.content[0].text


async def test_a_session_serves_nobody_but_who_began_it(system: System) -> None:
    folder = system.journal_file.parent
    make_owner_token(folder)
    tokens = [Users(folder).add(name) for name in ("ann", "eve")]
    ann, eve = ({"authorization": f"Bearer {token}", **BOTH} for token in tokens)
    async with system.frontend() as http:
        begun = await http.post("/mcp", json=INITIALIZE, headers=ann)
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        statuses = [(await http.post("/mcp", json=asked, headers={**who, **session})).status_code for who in (eve, ann)]
        ended = [(await http.delete("/mcp", headers={**who, **session})).status_code for who in (eve, ann, ann)]
    assert (begun.status_code, statuses, ended) == (200, [404, 200], [404, 200, 404])


async def test_the_guards_of_the_frontend_hold(client: httpx.AsyncClient) -> None:
    for headers, status in [
        ({"origin": "http://evil.example"}, 403),
        ({"host": "evil.example"}, 403),
        ({"authorization": "Bearer local2-unknown"}, 401),
        ({"content-type": "text/plain"}, 415),
    ]:
        answer = await client.post("/mcp", json=INITIALIZE, headers={**BOTH, **headers})
        assert answer.status_code == status
