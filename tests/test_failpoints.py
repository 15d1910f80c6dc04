"""Failpoints: armed by one variable, struck once for each token, and known by name."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local.core import failpoints
from local.core.errors import ConfigError
from local.core.failpoints import NAMES, parse
from tests.source_trees import source_trees

PASS_TWICE = (
    "from local.core.failpoints import reach\nfor _ in range(2):\n    reach('tool.after_run')\nprint('through')"
)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token file that lies ready."""
    path = tmp_path / "token"
    path.touch()
    return path


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The signals that this process would have sent to itself."""
    numbers: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: numbers.append(number))
    return numbers


def run(variable: str) -> subprocess.CompletedProcess[str]:
    """A process that gets past one failpoint twice."""
    environment = {**os.environ, "LOCAL2_FAILPOINTS": variable}
    return subprocess.run([sys.executable, "-c", PASS_TWICE], env=environment, capture_output=True, text=True)


def test_the_process_that_takes_the_token_is_killed_and_its_successor_gets_through(token) -> None:
    variable = f"tool.after_run=kill@{token}"
    assert run(variable).returncode == -signal.SIGKILL
    assert not token.exists()
    assert run(variable).stdout == "through\n"


def test_a_frozen_process_goes_on_when_it_is_continued(token) -> None:
    environment = {**os.environ, "LOCAL2_FAILPOINTS": f"tool.after_run=freeze@{token}"}
    process = subprocess.Popen([sys.executable, "-c", PASS_TWICE], env=environment, stdout=subprocess.PIPE, text=True)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=30)[0] == "through\n"


def test_without_a_token_or_without_the_variable_nothing_happens(tmp_path) -> None:
    assert run(f"tool.after_run=kill@{tmp_path / 'token'}").stdout == "through\n"
    assert run("").stdout == "through\n"


def test_a_token_put_back_strikes_again(token, sent) -> None:
    armed = parse(f"turn.accepted=kill@{token}")
    armed.reach("turn.accepted")
    armed.reach("turn.accepted")
    token.touch()
    armed.reach("turn.accepted")
    assert sent == [signal.SIGKILL, signal.SIGKILL]


def test_a_skip_counts_passes_while_the_token_lies_there(token, sent) -> None:
    armed = parse(f"turn.accepted=freeze@{token}#2")
    token.unlink()
    armed.reach("turn.accepted")
    token.touch()
    for expected in ([], [], [signal.SIGSTOP], [signal.SIGSTOP]):
        armed.reach("turn.accepted")
        assert sent == expected


def test_a_failpoint_may_be_armed_in_several_ways_and_strikes_only_under_its_name(tmp_path, sent) -> None:
    kill, freeze = tmp_path / "kill", tmp_path / "freeze"
    armed = parse(f"turn.accepted=kill@{kill}, turn.accepted=freeze@{freeze}")
    freeze.touch()
    armed.reach("turn.published")
    assert sent == []
    armed.reach("turn.accepted")
    assert sent == [signal.SIGSTOP]


def test_the_negative_control_is_asked_for_in_the_same_variable(tmp_path) -> None:
    assert parse(f"lossy=on,turn.accepted=kill@{tmp_path}").lossy
    assert not parse("").lossy
    assert not failpoints.is_lossy()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("turn.acepted=kill@/t", "there is no failpoint 'turn.acepted'; did you mean turn.accepted?"),
        ("turn.accepted=stop@/t", "turn.accepted: there is no action 'stop'; known are freeze, kill"),
        ("turn.accepted=kill", "expected name=action@token-file[#skip] or lossy=on, found 'turn.accepted=kill'"),
        ("turn.accepted=kill@/t#many", "expected name=action@token-file[#skip]"),
        ("lossy=yes", "expected name=action@token-file[#skip] or lossy=on, found 'lossy=yes'"),
    ],
)
def test_a_variable_that_cannot_be_read_says_what_is_wrong(text, complaint) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("LOCAL2_FAILPOINTS: ")


def test_a_name_that_is_none_is_refused_where_it_is_reached(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean turn\.accepted"):
        parse(f"turn.accepted=kill@{tmp_path}").reach("turn.acepted")


@pytest.mark.xdist_group("source trees")
def test_the_names_in_the_code_are_the_names_there_are() -> None:
    used = {name for tree in source_trees().values() for name in _reached(tree)}
    assert used == NAMES


def _reached(tree: ast.Module) -> list[str]:
    """The names in every `reach("…")` and `failpoints.reach("…")` of a file."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    called = [(getattr(call.func, "attr", getattr(call.func, "id", "")), call.args[0]) for call in calls]
    return [name.value for function, name in called if function == "reach" and isinstance(name, ast.Constant)]
