"""The MCP server of `local2 mcp`, with the SDK's own client and a system that gives set answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from local.cli.client import AnsweringSystem, StreamEvent
from local.core.errors import NoAnswer
from local.mcp.stdio import PART_CHARACTERS, HTTPSystemClient, MCPServerFactory

Json = dict[str, Any]
ANSWER: Json = {
    "status": "answered", "answer": "Paris.", "session_id": "s1", "tool_calls": [{"tool": "search_memory"}],
    "degraded": ["cut short"], "error": None,
}  # fmt: skip
HIT: Json = {"query": "Which?", "answer": "That.", "session_id": None, "asked_at": 0.0, "relevance": 0.5}
LONG = "a" * PART_CHARACTERS + "the end"


class System:
    """Answers, and keeps what it was sent."""

    def __init__(self, end: StreamEvent | None = None) -> None:
        self.asked: list[Any] = []
        self._end = end or StreamEvent("response", ANSWER, "2")

    def find(self) -> System:
        return self

    find_again = find

    def query_events(self, body: Json) -> Iterator[StreamEvent]:
        self.asked.append(body)
        yield StreamEvent("state", {"to": "GENERATING"}, "1")
        yield self._end

    def request(self, method: str, path: str) -> Json:
        if path.startswith("/tools"):  # which whoever speaks MCP asks for by itself
            return {"tools": []}
        self.asked.append((method, path))
        return {"hits": [HIT], "sessions": [{"session_id": "s1", "title": None, "updated_at": 86400.0}]}

    def export(self, session_id: str) -> str:
        if session_id != "s1":
            raise NoAnswer("not_found", f"there is no session {session_id}")
        return LONG


def served(system: Any) -> MCPServer:
    client = HTTPSystemClient(system)
    return MCPServerFactory(lambda _: client).server()


async def called(system: Any, tool: str, **arguments: Any) -> Any:
    async with Client(served(system)) as client:
        return await client.call_tool(tool, arguments)


async def test_a_question_is_asked_in_a_mode_that_requests_no_approval() -> None:
    system = System()
    result = await called(system, "ask", question="Where?")
    assert result.structured_content == {
        "answer": "Paris.", "conversation": "s1", "status": "answered", "tools": ["search_memory"],
        "degraded": ["cut short"],
    }  # fmt: skip
    [body] = system.asked
    assert (body["mode"], body["query"], "session_id" in body) == ("dontAsk", "Where?", False)
    await called(system, "ask", question="And where?", conversation="s1")
    assert system.asked[1]["session_id"] == "s1"


@pytest.mark.parametrize(
    "end",
    [
        StreamEvent("error", {"error": {"message": "no model"}}, "2"),
        StreamEvent("response", {**ANSWER, "status": "failed", "error": {"message": "no model"}}, "2"),
    ],
)
async def test_a_question_that_fails_is_an_error_that_says_why(end: StreamEvent) -> None:
    result = await called(System(end), "ask", question="Where?")
    assert result.is_error
    assert "no model" in result.content[0].text


async def test_progress_is_told_to_who_wants_it() -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with Client(served(System())) as client:
        await client.call_tool("ask", {"question": "Where?"}, progress_callback=hear)
    assert told == ["GENERATING"]


async def test_the_memory_is_searched_and_conversations_are_listed() -> None:
    system = System()
    found = await called(system, "search_memory", query="coffee & tea", limit=3)
    listed = await called(system, "list_conversations", words="coffee")
    assert found.structured_content == {
        "result": [
            {
                "question": "Which?", "answer": "That.", "conversation": "", "asked_at": "1970-01-01T00:00:00+00:00",
                "relevance": 0.5,
            }
        ]
    }  # fmt: skip
    assert listed.structured_content == {
        "result": [{"conversation": "s1", "title": "", "updated_at": "1970-01-02T00:00:00+00:00"}]
    }
    assert system.asked == [
        ("GET", "/memory?query=coffee+%26+tea&limit=3"),
        ("GET", "/sessions?query=coffee&limit=20"),
    ]


async def test_a_long_conversation_is_read_in_parts() -> None:
    first = (await called(System(), "read_conversation", conversation="s1")).structured_content
    rest = (await called(System(), "read_conversation", conversation="s1", start=first["next"])).structured_content
    assert first["text"] + rest["text"] == LONG
    assert (first["characters"], rest["next"]) == (len(LONG), None)


async def test_what_the_system_refuses_is_for_the_model_to_read() -> None:
    result = await called(System(), "read_conversation", conversation="nowhere")
    assert result.is_error
    assert "there is no session nowhere" in result.content[0].text


async def test_without_a_system_the_reason_is_the_answer(tmp_path: Path) -> None:
    for tool, arguments in (("ask", {"question": "Hello?"}), ("search_memory", {"query": "coffee"})):
        result = await called(AnsweringSystem(None, tmp_path, may_start=False), tool, **arguments)
        assert result.is_error
        assert f"no system runs on {tmp_path}" in result.content[0].text


async def test_bad_arguments_are_refused_and_nothing_is_asked() -> None:
    system = System()
    for arguments in ({}, {"question": ""}, {"question": 7}):
        assert (await called(system, "ask", **arguments)).is_error
    assert system.asked == []
