"""What an agent wants leave for is asked at the terminal of whoever asked the question, with whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.cli.temporary_system import write_settings
from tests.system.pseudo_terminal import PseudoTerminal
from tests.warm.warm_system import WarmSystem

PARTICIPANTS = ["gatekeeper", "generator", "files", "swarm"]
OFFERED = {"generator": {"offer": {"add": ["delegate_task"]}}}  # which only larger models are offered by default
KEYS = "[y] once · [a] in this conversation · [n] no ›"
Live = Any  # of conftest.py


def painted(what: str) -> list[dict[str, Any]]:
    """A question whose work an agent does, which writes a file."""
    task = f"Paint the {what}."
    delegated = {"name": "delegate_task", "arguments": {"tasks": [task]}}
    written = {"name": "write_file", "arguments": {"path": what, "content": "red"}}
    return [
        {"user": f"Have the {what}", "replies": [{"tool_calls": [delegated]}, {"content": "{result:1}"}]},
        {"user": task, "replies": [{"tool_calls": [written]}, {"content": f"The {what} is red now."}]},
    ]


@pytest.fixture
def live(tmp_path: Path, watching: type[Live]) -> Iterator[Live]:
    config_dir = write_settings(tmp_path / "settings", {"system": {"participants": PARTICIPANTS}, **OFFERED})
    script = yaml.safe_dump({"story": "agents that ask", "turns": [*painted("fence"), *painted("gate")]})
    with WarmSystem(tmp_path / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        live.stand_in("POST", "script", content=script)
        with live.http:
            yield live


def test_an_agent_s_call_is_asked_about_at_the_terminal_and_made_where_it_is_allowed(live: Live) -> None:
    fence = live.system.data_dir / "workspace" / "fence"
    question = ("ask", "Have the fence painted.", "--query-id", "painting", "--data-dir", live.system.data_dir)
    with PseudoTerminal(*question, columns=100) as terminal:
        terminal.wait_for(KEYS)
        assert "The agent agent: write_file (L1) needs approval." in terminal.text
        live.kill("api")  # its successor is told what waits, and the terminal asks once
        live.wait_until(lambda: bool(live.participant("gatekeeper")))
        with live.stream("GET", "/query/painting/events") as events:
            asked = next(data for name, data in events if name == "approval")
        assert (asked["agent"], asked["args"]["path"], fence.exists()) == ("agent", "fence", False)
        terminal.type("y\r")
        assert terminal.end() == 0
    assert "The fence is red" in " ".join(terminal.text.split())  # in a line that may be broken anywhere
    assert (terminal.text.count("needs approval."), fence.read_text()) == (1, "red")


@pytest.mark.thorough  # tests/cli/test_approval_prompt.py has the terminal, the page its approvals
def test_an_agent_s_call_that_is_denied_elsewhere_is_asked_about_no_more(live: Live) -> None:
    headers = {"authorization": f"Bearer {(live.system.data_dir / 'api_token').read_text().strip()}"}
    with PseudoTerminal("chat", "--data-dir", live.system.data_dir, columns=100) as terminal:
        terminal.wait_for("›")
        terminal.type("Have the gate painted.\r")
        terminal.wait_for(KEYS)
        [asked] = live.http.get("/approvals").json()["approvals"]
        body = {"decision": "deny", "by": "page"}
        assert live.http.post(f"/approvals/{asked['call_id']}", json=body, headers=headers).status_code == 200
        terminal.wait_for("deny, by page")
        terminal.wait_for("the user said no")
        terminal.wait_for("›", times=3)  # of the prompt, of the question about the call, and of the next prompt
        terminal.type("\x04")
        assert terminal.end() == 0
    assert not (live.system.data_dir / "workspace" / "gate").exists()
