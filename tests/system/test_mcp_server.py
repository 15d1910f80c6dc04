"""The client of the MCP SDK, over the pipes of `local2 mcp`, on a real system."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import Client, StdioServerParameters

SECONDS = 90.0


async def test_a_client_converses_reads_and_stops_what_it_wants_no_longer(live: Any) -> None:
    arguments = ["-m", "local.cli.entry", "mcp", "--data-dir", str(live.system.data_dir)]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    async with Client(server, read_timeout_seconds=SECONDS) as client:
        first = await client.call_tool("ask", {"question": "What is the Python GIL?"})
        conversation = first.structured_content["conversation"]
        await client.call_tool("ask", {"question": "Why was it introduced?", "conversation": conversation})
        read = await client.call_tool("read_conversation", {"conversation": conversation})
        assert "reference counting" in read.structured_content["text"]

        last = "And when?"
        live.model_fails(last, "first_token_delay", seconds=300, times=99)
        asking = asyncio.create_task(client.call_tool("ask", {"question": last, "conversation": conversation}))
        await asyncio.to_thread(live.wait_until, lambda: live.model_is_asked(last))
        asking.cancel()
        await asyncio.to_thread(live.wait_until, lambda: last_turn(live, conversation)["status"] == "cancelled")


def last_turn(live: Any, conversation: str) -> Any:
    return live.http.get(f"/sessions/{conversation}").json()["turns"][-1]
