"""What users approve or add while the system runs takes part in it at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.cli.command_table import run_command
from local.cli.temporary_system import write_settings
from local.core.data_dir import owner_token
from local.sandbox.process import PATH
from tests.system.test_tools_of_ones_own import COIN
from tests.warm.warm_system import WarmSystem

Live = Any  # of conftest.py

SKILL = "---\nname: harbour\ndescription: When ships can leave.\n---\nCall harbour__tide."
SERVER = """
import json, sys

def answer(method, params):
    if method == "initialize":
        about = {"name": "tide", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": "tide", "description": "High water.", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": "high water at 14:20"}], "isError": False}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        said = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"], asked.get("params", {}))}
        print(json.dumps(said), flush=True)
"""
SLOW_COIN = COIN.replace(
    "        return",
    "        import asyncio, pathlib\n"
    "        pathlib.Path(__file__).with_name('in_the_air').touch()\n"
    "        await asyncio.sleep(1)\n"
    "        return",
)
WITH_COIN = 'more_participants: ["my_tools.coin:CoinTool"]\n'
TAKEN_OVER = "the running system has applied the change"


@pytest.fixture
def live(tmp_path: Path, watching: type[Live]) -> Iterator[Live]:
    config_dir = write_settings(tmp_path / "settings", {"system": {"participants": ["gatekeeper", "generator"]}})
    with WarmSystem(tmp_path / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        with live.http:
            yield live


@pytest.fixture
def skill(live: Live) -> Path:
    folder: Path = live.config_dir / "skills" / "harbour"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "server.py").write_text(SERVER)
    (folder / "mcp.json").write_text(
        '{"mcpServers": {"harbour": {"command": "python3", "args": ["-S", "./server.py"]}}}'
    )
    return folder


def told(live: Live, capfd: pytest.CaptureFixture[str], *words: object, settings: bool = True) -> tuple[int, str]:
    """Exit status and output of a command."""
    capfd.readouterr()
    folders = ["--config-dir", str(live.config_dir)] if settings else []
    status = run_command([*map(str, words), *folders, "--data-dir", str(live.system.data_dir)])
    shown = capfd.readouterr()
    return status, shown.out + shown.err


def asked(live: Live, query: str) -> tuple[list[str], str]:
    """The levels of the calls that leave was asked for, and given, and the answer."""
    levels, answer = [], ""
    headers = {"authorization": f"Bearer {owner_token(live.system.data_dir)}"}
    with live.stream("POST", "/query", json={"query": query, "session_id": "port"}) as events:
        for name, data in events:
            if name == "approval" and "level" in data:
                levels.append(data["level"])
                decided = live.http.post(f"/approvals/{data['call_id']}", json={"decision": "allow"}, headers=headers)
                assert decided.status_code == 200
            answer = data.get("answer", answer)
    return levels, answer


def with_coin(live: Live, code: str) -> tuple[Path, str]:
    """A tool in the settings' folder: the file of settings that does not name it yet, and what stands there."""
    (live.config_dir / "my_tools").mkdir()
    (live.config_dir / "my_tools" / "coin.py").write_text(code)
    settings = live.config_dir / "system.yaml"
    return settings, settings.read_text()


@pytest.mark.usefixtures("machine_sandbox")
@pytest.mark.skipif(shutil.which("python3", path=PATH) is None, reason="needs a Python of the system")
def test_a_skill_s_tool_is_used_once_it_is_approved_and_until_it_is_taken_back(
    live: Live, skill: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, shown = told(live, capfd, "skills", "tools", skill, "--yes")
    assert (status, shown.splitlines()[-1]) == (0, f"approved; {TAKEN_OVER}")
    levels, answer = asked(live, "Call harbour__tide, please.")
    assert (levels, "14:20" in answer) == (["L2"], True)

    (skill / "server.py").write_text(SERVER.replace("14:20", "15:10"))
    assert "not as it was approved" in asked(live, "Call harbour__tide once more.")[1]
    assert told(live, capfd, "skills", "tools", skill, "--yes")[0] == 0
    assert "15:10" in asked(live, "Call harbour__tide again.")[1]

    status, shown = told(live, capfd, "skills", "tools", skill, "--remove")
    assert (status, shown) == (0, f"harbour is no longer offered; {TAKEN_OVER}\n")
    assert asked(live, "Call harbour__tide a last time.")[0] == []
    live.wait_until(lambda: live.participant("mcp_harbour") == {})
    assert live.http.get("/health").json()["status"] == "ok"


@pytest.mark.thorough  # test_extending.py has a participant that is added
def test_a_line_of_settings_is_used_once_its_participant_is_started(
    live: Live, capfd: pytest.CaptureFixture[str]
) -> None:
    settings, before = with_coin(live, COIN)
    assert told(live, capfd, "restart", "coin", settings=False)[0] == 2

    settings.write_text(before + WITH_COIN)
    assert told(live, capfd, "restart", "coin", settings=False)[1].startswith("coin is ready, process ")
    assert "the coin shows heads" in asked(live, "toss a coin")[1]
    pid = live.participant("coin")["pid"]

    settings.write_text(f"{before}nonsense: 1\n")
    status, shown = told(live, capfd, "restart", "coin", settings=False)
    assert (status, "nonsense: unknown key" in shown, live.participant("coin")["pid"]) == (2, True, pid)
    assert told(live, capfd, "restart", "generator", settings=False)[0] == 0  # which began with what was there then


def test_who_was_taken_out_of_the_settings_answers_what_is_in_hand_and_is_there_no_longer(
    live: Live, capfd: pytest.CaptureFixture[str]
) -> None:
    settings, before = with_coin(live, SLOW_COIN)
    settings.write_text(before + WITH_COIN)
    assert told(live, capfd, "restart", "coin", settings=False)[0] == 0
    settings.write_text(before)
    with live.stream("POST", "/query", json={"query": "toss a coin", "session_id": "purse"}) as events:
        for name, data in events:
            if name == "tool_call":
                live.wait_until((live.config_dir / "my_tools" / "in_the_air").exists)
                assert told(live, capfd, "restart", "coin", settings=False) == (
                    0, "coin is no longer a participant: it is no longer in the settings\n"
                )  # fmt: skip
            answer = data.get("answer", "")
    assert "the coin shows heads" in answer
    live.wait_until(lambda: live.participant("coin") == {})
    assert live.http.get("/health").json()["status"] == "ok"
    assert "heads" not in asked(live, "toss a coin once more")[1]
    assert told(live, capfd, "restart", "coin", settings=False)[0] == 2  # there is no such participant
