"""The baseline of every turn: httpx, json and a loop. No bus, no API, no record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx

from benchmarks.instant_tool import reverse
from benchmarks.model_server import MODEL

Json = dict[str, Any]
TOOL: Json = {
    "type": "function",
    "function": {
        "name": "instant",
        "description": "Write a text backwards.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text"}},
            "required": ["text"],
        },
    },
}


class BareLoop:
    """One agent in one process; the tool is a function."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, query: str) -> str:
        """The answer to a fresh conversation's first query."""
        messages: list[Json] = [
            {"role": "system", "content": "You are an assistant. Answer in as few words as it needs."},
            {"role": "user", "content": query},
        ]
        while True:
            content, calls = await self._stream(messages)
            if not calls:
                return content
            messages.append({"role": "assistant", "content": content, "tool_calls": calls})
            for call in calls:
                text = reverse(**call["function"]["arguments"])
                messages.append({"role": "tool", "tool_name": call["function"]["name"], "content": text})

    async def _stream(self, messages: Sequence[Json]) -> tuple[str, list[Json]]:
        body = {"model": MODEL, "messages": messages, "tools": [TOOL], "stream": True}
        content, calls = "", []
        async with self._client.stream("POST", "/api/chat", json=body) as response:
            async for line in response.aiter_lines():
                message = json.loads(line)["message"]
                content += message["content"]
                calls += message.get("tool_calls", ())
        return content, calls
