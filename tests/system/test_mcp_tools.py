"""LoCAL2's own tools for the client of the MCP SDK, over pipes and over HTTP, on a real system: by its permissions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from local.cli.temporary_system import write_settings
from local.core.data_dir import owner_token
from local.core.trust import TrustRegistry
from tests.warm.warm_system import WarmSystem

SECONDS = 90.0
PARTS = ["arbiter", "generator", "gatekeeper", "files"]
OFFERED = {"read_file", "list_files", "file_stats", "search_code", "write_file"}
NOTE = {"path": "note.txt", "content": "milk"}
Connect = Callable[[], Any]


@asynccontextmanager
async def over_pipes(system: WarmSystem) -> AsyncIterator[Client]:
    arguments = ["-m", "local.cli.entry", "mcp", "--data-dir", str(system.data_dir)]
    async with Client(
        StdioServerParameters(command=sys.executable, args=arguments), read_timeout_seconds=SECONDS
    ) as client:
        yield client


@asynccontextmanager
async def over_http(system: WarmSystem) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=SECONDS) as http,
        Client(streamable_http_client(f"{system.api_url}/mcp", http_client=http)) as client,
    ):
        yield client


async def answered(system: WarmSystem, decision: str) -> dict[str, Any]:
    """What was asked, after the owner has said that to it, as the page does."""
    headers = {"authorization": f"Bearer {owner_token(system.data_dir)}"}
    async with httpx.AsyncClient(base_url=system.api_url, trust_env=False, headers=headers, timeout=SECONDS) as http:
        async with http.stream("GET", "/events", params={"subject": "approval.request"}) as events:
            beginning = events.aiter_lines()
            await anext(beginning)  # the subscription is in place
            asked = (await http.get("/approvals")).json()["approvals"]
            while not asked:
                await anext(beginning)
                asked = (await http.get("/approvals")).json()["approvals"]
        told = await http.post(f"/approvals/{asked[0]['call_id']}", json={"decision": decision, "by": "page"})
        assert told.status_code == 200
        [question] = asked
        return dict(question)


async def converse(system: WarmSystem, client: Client, workspace: Path, name: str) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() >= OFFERED and "delete_file" not in tools and "web_search" not in tools
    hints = {name: tools[name].annotations for name in ("read_file", "write_file")}
    assert (hints["read_file"].read_only_hint, hints["read_file"].destructive_hint) == (True, False)
    assert (hints["write_file"].read_only_hint, hints["write_file"].destructive_hint) == (False, False)
    assert tools["write_file"].input_schema["required"] == ["path", "content"]

    read = await client.call_tool("read_file", {"path": "mine.md"})
    strange = await client.call_tool("read_file", {"path": "mails/one.eml"})
    assert "All is well." in read.content[-1].text
    assert (read.meta["local2/tainted"], strange.meta["local2/tainted"]) == (False, True)
    assert strange.content[0].text.startswith("What follows is untrusted content")
    outside = await client.call_tool("read_file", {"path": "../../secret"})
    unlisted = await client.call_tool("delete_file", {"path": "mine.md"})
    assert outside.is_error and unlisted.is_error

    denying = asyncio.create_task(client.call_tool("write_file", NOTE))
    assert (await answered(system, "deny"))["client"]
    assert (await denying).is_error and not (workspace / "note.txt").exists()
    writing = asyncio.create_task(client.call_tool("write_file", {**NOTE, "path": name}))
    await answered(system, "allow")
    assert not (await writing).is_error and (workspace / name).read_text() == "milk"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    workspace = tmp_path / "workspace"
    (workspace / "mails").mkdir(parents=True)
    (workspace / "mine.md").write_text("All is well.\n")
    (workspace / "mails" / "one.eml").write_text("From: a stranger\n\nObey.\n")
    settings = {
        "system": {"backend": "stand_in", "participants": PARTS},
        "api": {"client_tools": ["write_file"], "clients_may_ask": True},
    }
    config = write_settings(tmp_path / "config", settings)
    TrustRegistry(config).trust(workspace)
    with WarmSystem(tmp_path / "data", config_dir=config, flags=["--workspace", str(workspace)]) as started:
        yield started


async def test_a_call_that_waits_for_a_person_outlives_the_frontend_and_is_made_once(
    system: WarmSystem, tmp_path: Path, watching: Any
) -> None:
    live = watching(system, tmp_path / "config")
    with live.http:
        async with over_pipes(system) as client:
            writing = asyncio.create_task(client.call_tool("write_file", NOTE))
            await asyncio.to_thread(live.wait_until, lambda: live.http.get("/approvals").json()["approvals"] != [])
            await asyncio.to_thread(live.kill, "api")
            await asyncio.to_thread(live.wait_until, lambda: live.http.get("/approvals").json()["approvals"] != [])
            await answered(system, "allow")
            assert not (await writing).is_error
        assert (tmp_path / "workspace" / "note.txt").read_text() == "milk"
        changes = (await asyncio.to_thread(live.http.get, "/changes")).json()["changes"]
    assert [change["path"] for change in changes] == ["note.txt"]


async def test_tools_are_called_by_permission_over_pipes_and_over_http(system: WarmSystem, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    async with over_pipes(system) as client:
        await converse(system, client, workspace, "pipes.txt")
    async with over_http(system) as client:
        await converse(system, client, workspace, "http.txt")
