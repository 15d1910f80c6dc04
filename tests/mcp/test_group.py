"""Tools of MCP servers in their sandbox: only approved tools are called, and only with a grant."""

from __future__ import annotations

import json
import os
import socket
import sys
import venv
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from local.bus.blobs import BlobStore
from local.bus.envelope import Trace
from local.bus.messages import ToolRequest, ToolResult
from local.core.errors import ConfigError, SandboxMissing, ToolError
from local.core.mcp_servers import MCPServerConfig, MCPToolRule, approved_file
from local.mcp import client as mcp_connection
from local.mcp import tools as mcp_group
from local.mcp.client import ApprovedTool, approvable, write_approved
from local.mcp.tools import MCPGroup, connect
from local.runtime.participant import Resources
from local.sandbox.interpreters import program_of
from local.tools.tool import Tool

Serve = Callable[..., Awaitable[Any]]
PYTHON = Path(sys.executable).resolve()
PLAIN = Path(__file__).parent / "plain_server.py"
SDK_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("sums")
@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
server.run("stdio")
"""


pytestmark = pytest.mark.usefixtures("machine_sandbox")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def config(tmp_path: Path) -> MCPServerConfig:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / PLAIN.name).write_bytes(PLAIN.read_bytes())
    return MCPServerConfig(
        command=str(PYTHON), args=("-S", str(shown / PLAIN.name)), env={"KEY": "se cret"},
        readable=(Path(sys.base_prefix), shown),
    )  # fmt: skip


@pytest.fixture
def approve(data: Path) -> Callable[[MCPServerConfig], Awaitable[list[str]]]:
    """Approves what the server says now, as `local2 mcp approve` does; gives what is left out."""

    async def approve(config: MCPServerConfig) -> list[str]:
        connection = connect("plain", config, data, [])
        try:
            tools, refused = approvable("plain", await connection.tools())
        finally:
            await connection.close()
        write_approved(approved_file(data, "plain"), tools)
        return refused

    return approve


def approved_by_hand(data: Path) -> None:
    """One tool was approved, by a server that is not started for that."""
    write_approved(approved_file(data, "plain"), [ApprovedTool("plain__environ", "environ", "What it does.", {}, "0")])


def built(config: MCPServerConfig, folder: Path) -> MCPGroup:
    kind: type[MCPGroup] = mcp_group.plain  # type: ignore[attr-defined]  # made for each name in mcp.json
    return kind.build(config, Resources(data_dir=folder))


async def test_an_approved_tool_is_offered_and_called_in_its_sandbox(
    serve: Serve, approve: Any, config: MCPServerConfig, data: Path
) -> None:
    refused = await approve(config)
    assert refused == ["'a b': another tool is called plain__a_b, too"]
    group = built(config, data)
    caller = await serve(group, BlobStore(data / "blobs"))
    schema = await caller.schema()
    told = (schema.tool, schema.description, schema.safety, schema.category, schema.effect, schema.trusted)
    assert told == ("plain__read", "What read does.", "L2", "meta", "write", False)

    (data / "api_token").write_text("owner")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        asked = [
            ("read", {"path": str(config.readable[1] / PLAIN.name)}),
            ("read", {"path": str(data / "api_token")}),
            ("connect", {"port": port}),
            ("environ", {}),
            ("mumble", {}),
            ("a_b", {}),
            ("beg", {"for": ["sampling/createMessage", "elicitation/create", "roots/list", "resources/read"]}),
        ]
        own, token, reached, variables, mumbled, renamed, begged = [
            await caller.call(args, f"q1:0:{index}", tool=f"plain__{name}") for index, (name, args) in enumerate(asked)
        ]
    assert own.result == PLAIN.read_text()
    assert "No such file" in token.error.message
    assert "Connection refused" in reached.error.message
    assert (mumbled.result, renamed.result) == ("done", "done")
    refusals = ["Sampling not supported", "Elicitation not supported", "List roots not supported", "Method not found"]
    assert json.loads(begged.result) == refusals, "a server can ask nothing of the model, the user or the files"
    seen = json.loads(variables.result)
    assert (seen["KEY"], seen["HOME"]) == ("se cret", str(data / "mcp" / "plain"))
    assert set(seen) - {"KEY", "HOME", "PWD", "LC_CTYPE"} <= {"PATH", "TMPDIR", "LANG", "TERM", "USER"} | {
        "GIT_TERMINAL_PROMPT"
    }
    words = [word for child in psutil.Process().children(recursive=True) for word in _words_of(child)]
    assert words
    assert not [word for word in words if "se cret" in word], "arguments of processes are seen by all"

    unknown = await caller.call({}, "q1:0:8", tool="plain__change")
    assert unknown.result == "done"
    changed = await caller.call({"path": "/etc/hostname"}, "q1:0:9", tool="plain__read")
    assert changed.error.kind == "not_approved"
    assert "local2 mcp approve plain" in changed.error.message


async def test_without_a_grant_nothing_is_called(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, config: MCPServerConfig, data: Path
) -> None:
    approved_by_hand(data)
    monkeypatch.setattr(Tool, "grants", None)
    before = set(psutil.Process().children())  # other tests may have systems of theirs
    caller = await serve(built(config, data))
    refused = await caller.call({}, tool="plain__environ")
    assert refused.error.kind == "not_granted"
    assert set(psutil.Process().children()) <= before


async def test_a_server_that_ends_says_why_is_left_alone_for_a_while_and_then_started_again(
    monkeypatch: pytest.MonkeyPatch, config: MCPServerConfig, data: Path
) -> None:
    monkeypatch.setattr(mcp_connection, "FIRST_PAUSE", 1000.0)
    connection = connect("plain", config, data, [])
    tools = {tool.server_name: tool for tool in approvable("plain", await connection.tools())[0]}
    for name, why in (
        ("end", "it has ended with 3: out of paper"),
        ("huge", "it wrote a line of more than 16 MB"),
    ):
        for again in (name, "environ"):
            with pytest.raises(ToolError, match=f"the MCP server plain is not available: {why}"):
                await connection.call(tools[again], {})
        connection._again_at = 0.0  # the pause is over
        assert "KEY" in (await connection.call(tools["environ"], {})).text
        assert connection.trouble == ""
    await connection.close()


async def test_a_network_is_that_of_the_machine_if_the_owner_says_so(config: MCPServerConfig, data: Path) -> None:
    connection = connect("plain", config.model_copy(update={"network": True}), data, [])
    tools = {tool.server_name: tool for tool in approvable("plain", await connection.tools())[0]}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert (await connection.call(tools["connect"], {"port": listener.getsockname()[1]})).text == "done"
    await connection.close()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("/bin/sh", "-c", "echo hello; echo what >&2; exit 4"), "it has ended with 4: what"),
        (("/no/such/program",), "there is no program '/no/such/program'"),
        (("/bin/sleep", "1000"), r"it did not answer within 0\.1 s of its start"),
    ],
)
async def test_what_is_no_server_is_not_waited_for(command: tuple[str, ...], why: str, data: Path) -> None:
    config = MCPServerConfig(command=command[0], args=command[1:], start_seconds=0.1 if "sleep" in command[0] else 20)
    connection = connect("plain", config, data, [])
    with pytest.raises(ToolError, match=why):
        await connection.tools()
    await connection.close()


async def test_a_server_of_a_virtual_environment_starts_once_it_may_read_that(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "project" / ".venv"
    venv.create(made, symlinks=True)
    server = made / "bin" / "plain-server"
    server.write_text(f"#!{made}/bin/python\n{PLAIN.read_text()}")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", f"{made / 'bin'}:{os.environ['PATH']}")
    config = MCPServerConfig(command="plain-server")
    connection = connect("plain", config, data, [])
    with pytest.raises(
        ToolError, match=f"a virtual environment of Python in {made}, cannot be read .* add to readable"
    ):
        await connection.tools()
    program = program_of("plain-server")
    assert program is not None
    connection = connect("plain", config.model_copy(update={"readable": program.needs}), data, [])
    assert await connection.tools()
    await connection.close()


@pytest.mark.thorough
async def test_a_server_of_the_sdk_is_called(data: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "sums.py").write_text(SDK_SERVER)
    readable = (Path(sys.prefix), Path(sys.base_prefix), shown)
    config = MCPServerConfig(command=sys.executable, args=(str(shown / "sums.py"),), readable=readable)
    connection = connect("plain", config, data, [])
    [add], _ = approvable("plain", await connection.tools())
    assert (await connection.call(add, {"a": 2, "b": 3})).text == "5"
    with pytest.raises(ToolError, match="validation error"):
        await connection.call(add, {"a": "two"})
    await connection.close()


async def test_nothing_is_offered_until_it_is_approved_nor_without_a_sandbox(
    monkeypatch: pytest.MonkeyPatch, config: MCPServerConfig, data: Path
) -> None:
    group = built(config, data)
    assert "local2 mcp approve plain" in group.details()["off"]
    approved_by_hand(data)

    def none() -> None:
        raise SandboxMissing("there is no bubblewrap", "install it")

    monkeypatch.setattr(mcp_group, "sandbox_of_this_machine", none)
    group = built(config, data)
    assert "there is no bubblewrap" in group.details()["off"]
    assert type(group).tools == ()


async def test_a_level_that_the_owner_sets_counts(config: MCPServerConfig, data: Path) -> None:
    approved_by_hand(data)
    group = built(config.model_copy(update={"safety": "L0", "category": "data"}), data)
    kinds = {(kind.safety, kind.category, kind.effect, kind.sends_out) for kind in type(group).tools}
    assert kinds == {("L0", "data", "read", False)}
    rules = {"environ": MCPToolRule(safety="L1"), "read": MCPToolRule(disabled=True)}
    two = [ApprovedTool(f"plain__{name}", name, "What it does.", {}, "0") for name in ("environ", "read", "other")]
    write_approved(approved_file(data, "plain"), two)
    group = built(config.model_copy(update={"safety": "L0", "tools": rules}), data)
    assert [(kind.name, kind.safety) for kind in type(group).tools] == [
        ("plain__environ", "L1"),
        ("plain__other", "L0"),
    ]
    off = built(config.model_copy(update={"disabled": True}), data)
    assert (type(off).tools, off.details()["off"]) == ((), "it is switched off")
    approved_by_hand(data)
    for reaches in ({"network": True}, {"command": "", "url": "https://tools.example/mcp"}):
        group = built(config.model_copy(update=reaches), data)
        assert [kind.sends_out for kind in type(group).tools] == [True], "it may tell others what it is given"


async def test_a_server_answers_the_owner_and_the_users_that_the_settings_name(
    serve: Serve, approve: Any, config: MCPServerConfig, data: Path
) -> None:
    config = config.model_copy(update={"safety": "L0", "users": ("ann",)})
    await approve(config)
    caller = await serve(built(config, data))
    request = ToolRequest(query_id="q1", call_id="q1:0:0", tool="plain__environ", args={})

    async def told(user: str | None) -> ToolResult:
        return await caller.bus.request(request, ToolResult, 90, Trace("q1", None, "s1", user))  # type: ignore[no-any-return]

    stranger = await told("bob")
    assert stranger.error is not None and stranger.error.kind == "not_yours" and stranger.result is None
    for user in (None, "owner", "ann"):
        assert "KEY" in str((await told(user)).result)
    assert (await caller.schema()).users == ("ann",)


def test_what_holds_our_own_files_is_shown_to_no_server(config: MCPServerConfig, data: Path) -> None:
    with pytest.raises(ConfigError, match=r"mcp\.json: plain: .*which no command may see"):
        connect("plain", config.model_copy(update={"readable": (data.parent,)}), data, [])


def _words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # of another test, and gone since
        return []
