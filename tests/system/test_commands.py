"""What looks at a system and tends it from a terminal, on one that runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from local.cli.entry import main
from tests.system.pseudo_terminal import PseudoTerminal

CLI = [sys.executable, "-m", "local.cli.entry"]
Run = Callable[..., str]


@pytest.fixture
def run(live: Any, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the running system; gives its output."""

    def command(*arguments: str, status: int = 0) -> str:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--data-dir", str(live.system.data_dir)])
        out, err = capfd.readouterr()
        assert int(str(ended.value.code or 0)) == status, err
        return out or err

    return command


@pytest.fixture(scope="module")
def asked(live: Any) -> Any:
    """An answer with a tool's result, in a conversation of its own."""
    return live.ask("Roll a dice with 20 sides", session_id="told-by-commands")


def test_the_status_lists_everybody_and_a_restart_makes_another_process(run: Run, live: Any) -> None:
    before = live.participant("web_fetch")["pid"]
    assert run("restart", "web_fetch").startswith("web_fetch is ready, process ")
    live.wait_until(lambda: live.health()["status"] == "ok")  # on a busy machine others may be late with a beat
    status = run("status")
    assert re.search(r"^web_fetch +tool +ready", status, re.MULTILINE)
    assert live.participant("web_fetch")["pid"] not in (before, None)
    assert {each["name"] for each in json.loads(run("status", "--json"))["participants"]} >= {"generator", "api"}
    assert "nobody" in run("restart", "nobody", status=2)


def test_the_log_of_one_participant_is_shown_alone(run: Run, live: Any) -> None:
    first = json.loads(run("logs", "supervisor", "--json", "-n", "1000").splitlines()[0])
    assert first["message"] == f"starts as process {live.system.process.pid}"
    assert run("logs", "nobody").startswith("no line of ")


def test_a_conversation_is_found_shown_renamed_branched_exported_and_deleted(run: Run, asked: Any) -> None:
    assert "told-by-" in run("sessions", "search", "dice", "with", "20")
    assert asked["answer"] in run("sessions", "show", "told-by-c")
    assert "Of dice" in run("sessions", "rename", "told-by-c", "Of", "dice")
    branch = run("sessions", "branch", "told-by-c", "--before", asked["query_id"]).strip()
    assert branch in run("sessions", "list", "--json")
    assert "Roll a dice" in run("sessions", "export", "told-by-c")
    everything = json.loads(run("sessions", "export", "--all", "--user", "owner"))
    assert {"told-by-commands", branch} <= {each["session"]["session_id"] for each in everything}
    assert branch in run("sessions", "delete", branch)
    assert branch not in run("sessions", "list", "--json")


def test_a_query_is_traced(run: Run, asked: Any) -> None:
    text = run("trace", asked["query_id"])
    assert text.startswith(f"query {asked['query_id']}: ")
    assert {"store", "model", "tool"} <= set(re.findall(r"[█░…]\s+(\w+)", text))
    assert json.loads(run("trace", asked["query_id"], "--json"))["complete"]


def test_who_says_what_to_whom_how_much_and_how_late_is_told(run: Run, live: Any) -> None:
    """All of them listen for as long as it takes until everybody has said how it is."""
    system = ["--seconds", "6", "--data-dir", str(live.system.data_dir)]
    commands = [["info", "query.received"], ["bw", "participant."], ["delay", "participant."]]
    listening = [
        subprocess.Popen([*CLI, "tap", *words, *system], stdout=subprocess.PIPE, text=True) for words in commands
    ]
    arrows = json.loads(run("tap", "graph", "--json"))["arrows"]
    info, bandwidth, delay = (each.communicate(timeout=60)[0] for each in listening)
    assert ("tool.request.dice", "generator") in {(each["subject"], each["sender"]) for each in arrows}
    assert "generator" in info
    assert "/s" in bandwidth
    assert "average delay: " in delay


def test_a_message_is_said_by_hand_and_obeyed(run: Run, live: Any) -> None:
    identity = run(
        "tap", "pub", "query.received", '{"query": "What is 3*3?", "query_id": "by-hand"}', "--query", "by-hand"
    )
    assert re.fullmatch(r"\w+\n", identity)
    live.wait_until(lambda: live.http.get("/query/by-hand").json().get("answer") == "3*3 = 9")


def test_the_models_that_are_here_are_listed(run: Run) -> None:
    assert isinstance(json.loads(run("model", "list", "--json"))["models"], list)


def test_a_chat_offers_the_tools_that_were_asked_for_and_tells_all(live: Any) -> None:
    with PseudoTerminal("chat", "--verbose", "--no-tools", "--data-dir", live.system.data_dir) as terminal:
        terminal.wait_for("›")
        terminal.type("Roll a dice with 20 sides\r")
        terminal.wait_for("›", times=2)
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "RECEIVING → GENERATING" in terminal.text
    assert "calls dice" not in terminal.text
