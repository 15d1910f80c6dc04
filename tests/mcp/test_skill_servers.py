"""Tools that a skill brings: offered as the owner has seen them, by a server in the sandbox, until anything changes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from local.cli.command_table import run_command
from local.core.errors import ConfigError, ToolError
from local.core.mcp_servers import approved_file, load_mcp_servers
from local.mcp import tools as mcp_group
from local.mcp.client import read_approved
from local.mcp.tools import MCPGroup, connect
from local.runtime.participant import Resources
from local.sandbox.process import PATH
from local.skills.library import SkillApprovalBook, SkillLibrary
from local.skills.messages import SkillRequest
from local.skills.tools import SkillService
from local.tools.skill_folder import IN_SETTINGS, ServingSkill, SkillPlace

PLAIN = Path(__file__).parent / "plain_server.py"
TEXT = "---\nname: plain\ndescription: Read what lies there.\n---\nCall plain__read."

pytestmark = [
    pytest.mark.usefixtures("machine_sandbox"),
    pytest.mark.skipif(shutil.which("python3", path=PATH) is None, reason="needs a Python of the system"),
]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    folder = tmp_path / "settings"
    skill = folder / "skills" / "plain"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(TEXT)
    (skill / "server.py").write_bytes(PLAIN.read_bytes())
    brought(skill, {"plain": {"command": "python3", "args": ["-S", "./server.py"]}})
    return folder


def brought(skill: Path, servers: dict[str, Any]) -> None:
    (skill / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def told(settings: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit status and output of a command about the skill."""
    folder = str(settings / "skills" / "plain")
    data = ["--data-dir", str(settings.parent / "data")] if words[0] == "tools" else []
    status = run_command(["skills", words[0], folder, *words[1:], "--config-dir", str(settings), *data])
    shown = capfd.readouterr()
    return status, shown.out + shown.err


def built(settings: Path) -> MCPGroup:
    kind: type[MCPGroup] = mcp_group.plain  # type: ignore[attr-defined]  # made for each name in mcp.json
    return kind.build(load_mcp_servers(settings)["plain"], Resources(data_dir=settings.parent / "data"))


async def listed(settings: Path) -> str:
    """What frontends learn about the skill's tools."""
    places = [SkillPlace("settings", settings, IN_SETTINGS)]
    keeper = SkillService(SkillLibrary(lambda: places, SkillApprovalBook(settings)))
    return (await keeper.answer(SkillRequest(verb="list"))).skills[0].tools


def test_what_was_approved_is_called_until_a_file_of_the_skill_changes(
    settings: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data, skill = settings.parent / "data", settings / "skills" / "plain"
    assert told(settings, capfd, "check") == (0, "plain: ready; its tools: not approved\n")
    status, shown = told(settings, capfd, "tools", "--yes")
    assert (status, "plain__read (new)" in shown) == (0, True)
    assert told(settings, capfd, "check") == (0, "plain: ready; its tools: approved\n")
    server = load_mcp_servers(settings)["plain"]
    assert (server.safety, server.network, server.readable) == ("L2", False, ())
    assert built(settings).details() == {}

    async def called() -> None:
        connection = connect("plain", server, data, [settings])
        tools = {tool.server_name: tool for tool in read_approved(approved_file(data, "plain"))}
        assert (await connection.call(tools["mumble"], {})).text == "done"
        (skill / "server.py").write_bytes(PLAIN.read_bytes() + b"\n")
        with pytest.raises(ToolError, match="not as it was approved: look at it with `local2 skills tools") as error:
            await connection.call(tools["mumble"], {})
        assert error.value.kind == "not_approved"

    asyncio.run(called())
    assert told(settings, capfd, "check") == (0, "plain: ready; its tools: changed since it was approved\n")
    assert asyncio.run(listed(settings)) == "changed since it was approved"
    assert "not as it was approved" in built(settings).details()["off"]
    assert told(settings, capfd, "tools", "--yes")[0] == 0
    assert built(settings).details() == {}
    said = "plain is no longer offered; no system runs; the change applies to the next start\n"
    assert told(settings, capfd, "tools", "--remove") == (0, said)
    assert (load_mcp_servers(settings), approved_file(data, "plain").exists()) == ({}, False)


def test_what_is_taken_back_is_not_called_by_a_system_that_runs(
    settings: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert told(settings, capfd, "tools", "--yes")[0] == 0
    group = built(settings)
    (tool,) = (each for each in group.offered() if each.name == "plain__mumble")

    async def called() -> None:
        assert (await tool.run()).text == "done"
        assert told(settings, capfd, "tools", "--remove")[0] == 0
        with pytest.raises(ToolError, match="the tools of the skill plain are no longer approved"):
            await tool.run()

    asyncio.run(called())


def test_a_skill_that_has_gone_takes_its_tools_along(settings: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert told(settings, capfd, "tools", "--yes")[0] == 0
    shutil.rmtree(settings / "skills" / "plain")
    assert "not as it was approved" in built(settings).details()["off"]
    assert told(settings, capfd, "tools", "--remove")[0] == 0
    assert load_mcp_servers(settings) == {}


def test_without_a_yes_nothing_is_started_or_offered(
    settings: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*arguments: object) -> None:
        raise AssertionError("a server was started")

    monkeypatch.setattr(mcp_group, "connect", started)
    monkeypatch.setattr("typer.confirm", lambda question: False)
    status, shown = told(settings, capfd, "tools")
    assert (status, shown) == (1, "plain: python3 -S /skills/plain/server.py\n")
    assert load_mcp_servers(settings) == {}


def test_a_skill_cannot_give_its_server_more_than_the_sandbox(
    settings: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for given, why in (
        ({"network": True}, "plain.network: a skill's server has none"),
        ({"readable": ["/opt"]}, "plain.readable: a skill's server has none"),
        ({"safety": "L0"}, "plain.safety: a skill's server has none"),
        ({"skill": "/tmp"}, "plain.skill: a skill's server has none"),
        ({"env": {"KEY": "secret:brave"}}, "no variables and no secrets"),
        ({"args": ["${HOME}"]}, "no variables and no secrets"),
        ({"command": "", "url": "https://example.org/mcp"}, "plain.url: a skill's server has none"),
    ):
        brought(settings / "skills" / "plain", {"plain": {"command": "python3", **given}})
        status, shown = told(settings, capfd, "tools", "--yes")
        assert (status, why in shown) == (2, True)
    assert why in told(settings, capfd, "check")[1]
    assert load_mcp_servers(settings) == {}


def test_what_is_no_file_of_the_skill_brings_none_and_holds_nobody_up(settings: Path) -> None:
    """A link is not among what is approved, and whoever opened a pipe would wait until somebody writes to it."""
    folder = settings / "skills" / "plain"
    file = folder / "mcp.json"
    elsewhere = settings / "elsewhere.json"
    file.rename(elsewhere)
    for make, why in (
        (lambda: os.mkfifo(file), "a pipe"),
        (lambda: file.symlink_to(elsewhere), "links are not followed"),
        (lambda: file.write_text("[" * 100_000), 'expected {"mcpServers"'),
    ):
        make()
        with pytest.raises(ConfigError, match=why):
            ServingSkill.of(folder).servers()
        file.unlink()


def test_a_skill_in_a_workspace_brings_none(settings: Path) -> None:
    folder = settings / "project" / ".local2" / "skills" / "plain"
    shutil.copytree(settings / "skills" / "plain", folder)
    with pytest.raises(ConfigError, match="is in a workspace"):
        ServingSkill.of(folder)
