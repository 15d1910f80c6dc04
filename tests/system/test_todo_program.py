"""Somebody new trusts a folder, asks for a program in it in the terminal, allows each step by hand, and takes it all
back: the whole default system, as `local2 chat` starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from local.cli.temporary_system import write_settings
from local.core.data_dir import RunDirectory
from local.shell.shell import sandbox_problem
from tests.system.pseudo_terminal import PseudoTerminal
from tests.todo_program import FILES, QUESTION, TURN


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty, with settings and data elsewhere."""
    if (problem := sandbox_problem()) and not os.environ.get("CI"):
        pytest.skip(str(problem))
    settings = write_settings(tmp_path / "settings", {"system": {"backend": "stand_in"}})
    monkeypatch.setenv("LOCAL2_CONFIG_DIR", str(settings))
    monkeypatch.setenv("LOCAL2_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def local2(*arguments: str) -> str:
    command = [sys.executable, "-m", "local.cli.entry", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.thorough
def test_a_program_is_written_tested_and_undone_in_the_terminal(project: Path) -> None:
    assert local2("trust") == f"{project} is trusted; `local2 trust --remove` takes it back\n"
    with PseudoTerminal("chat", columns=100) as terminal:
        terminal.wait_for("›")
        script = yaml.safe_dump({"story": "todo", "turns": [TURN]})
        url = RunDirectory(project.parent / "data").read().model_url
        httpx.post(f"{url}/stand_in/script", content=script, trust_env=False).raise_for_status()
        terminal.type(f"{QUESTION}\r")
        for number, tool in enumerate(("write_file (L1)", "write_file (L1)", "shell_exec (L2)"), 1):
            terminal.wait_for("[y] once · [a] in this conversation · [n] no ›", times=number)
            assert terminal.text.count(" needs approval.") == number and f"{tool} needs approval." in terminal.text
            terminal.type("y\r")
        terminal.wait_for("exit code 0 after")
        assert {path.name: path.read_text() for path in project.iterdir()} == FILES
        changes = json.loads(local2("undo", "list", "--json"))["changes"]
        assert {change["path"] for change in changes} == set(FILES)
        local2("undo", "turn", changes[0]["query_id"])
        assert list(project.iterdir()) == []
        terminal.type("\x04")
        assert terminal.end() == 0
