"""Failpoints: armed by one variable, struck once for each token, and known by name."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from local.core import failpoints
from local.core.errors import ConfigError
from local.core.failpoints import NAMES, parse, reach
from tests.source_trees import SOURCE


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token file that is ready to be taken."""
    path = tmp_path / "token"
    path.touch()
    return path


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The signals that this process would have sent to itself."""
    numbers: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: numbers.append(number))
    return numbers


def child(variable: str) -> int:
    """A process that passes one failpoint twice and then exits with status 7."""
    if pid := os.fork():
        return pid
    os.environ["LOCAL2_FAILPOINTS"] = variable
    failpoints._armed.cache_clear()
    for _ in range(2):
        reach("tool.after_run")
    os._exit(7)


def end_of(pid: int) -> int:
    """Exit status, or the negative number of the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_the_process_that_takes_the_token_is_struck_and_its_successor_gets_through(token: Path) -> None:
    variable = f"tool.after_run=kill@{token}"
    assert end_of(child(variable)) == -signal.SIGKILL
    assert not token.exists()
    assert end_of(child(variable)) == 7
    token.touch()
    frozen = child(f"tool.after_run=freeze@{token}")
    assert os.WIFSTOPPED(os.waitpid(frozen, os.WUNTRACED)[1])
    os.kill(frozen, signal.SIGCONT)
    assert end_of(frozen) == 7
    assert end_of(child("")) == 7


def test_a_token_put_back_strikes_again_after_as_many_passes_as_are_skipped(token: Path, sent: list[int]) -> None:
    armed = parse(f"turn.accepted=freeze@{token}#2")
    token.unlink()
    armed.reach("turn.accepted")  # not counted: there is no token
    token.touch()
    for expected in ([], [], [signal.SIGSTOP], [signal.SIGSTOP]):
        armed.reach("turn.accepted")
        assert sent == expected
    token.touch()
    armed.reach("turn.accepted")
    assert sent == [signal.SIGSTOP] * 2


def test_a_failpoint_may_be_armed_in_several_ways_and_strikes_only_under_its_name(
    tmp_path: Path, sent: list[int]
) -> None:
    kill, freeze = tmp_path / "kill", tmp_path / "freeze"
    armed = parse(f"turn.accepted=kill@{kill}, turn.accepted=freeze@{freeze}, lossy=on")
    assert armed.lossy and not parse("").lossy
    freeze.touch()
    armed.reach("turn.published")
    assert sent == []
    armed.reach("turn.accepted")
    assert sent == [signal.SIGSTOP]
    with pytest.raises(ConfigError, match=r"did you mean turn\.accepted"):
        armed.reach("turn.acepted")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("turn.acepted=kill@/t", "there is no failpoint 'turn.acepted'; did you mean turn.accepted?"),
        ("turn.accepted=stop@/t", "turn.accepted: there is no action 'stop'"),
        ("turn.accepted=kill", "expected name=action@token-file[#skip] or lossy=on, found 'turn.accepted=kill'"),
        ("turn.accepted=kill@/t#many", "expected name=action@token-file[#skip]"),
        ("lossy=yes", "expected name=action@token-file[#skip] or lossy=on, found 'lossy=yes'"),
    ],
)
def test_a_variable_that_cannot_be_read_says_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("LOCAL2_FAILPOINTS: ")


def test_the_names_in_the_code_are_the_names_there_are() -> None:
    source = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    assert set(re.findall(r'\breach\(\s*"([a-z_.]+)"', source)) == NAMES
