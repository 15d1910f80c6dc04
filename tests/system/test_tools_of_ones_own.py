"""Participants that did not come with the system: by a line of configuration, and by hand."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest

from local.run.participant import main

COIN = '''
from local.tools.tool import Tool


class CoinTool(Tool):
    """Toss a coin."""

    name = "coin"
    safety = "L0"

    async def run(self) -> str:
        return "the coin shows heads"
'''

BELL = '''
from local.tools.tool import Tool


class BellTool(Tool):
    """Ring a bell."""

    name = "bell"
    effect = "write"

    async def run(self) -> str:
        return "it rang"
'''

BY_HAND = "local.run.participant"


def test_a_tool_of_ones_own_is_one_file_and_one_line(live) -> None:
    answer = live.ask("roll a dice with 6 sides")
    assert [(call["tool"], call["args"]) for call in answer["tool_calls"]] == [("dice", {"sides": 6})]
    assert "the dice with 6 sides shows 6" in answer["answer"]


def test_a_participant_run_by_hand_is_used_while_it_lives_and_only_then(live, command) -> None:
    (live.config_dir / "my_tools" / "coin.py").write_text(COIN)
    by_hand = command(*_words(live, "my_tools.coin:CoinTool"))
    live.wait_until(lambda: live.participant("coin").get("state") == "ready")
    answer = live.ask("toss a coin")
    assert [call["tool"] for call in answer["tool_calls"]] == ["coin"]

    second = command(*_words(live, "my_tools.coin:CoinTool"))
    _, said = second.communicate(timeout=90)
    assert second.returncode == 2
    assert said == f"local2: coin is already running (process {by_hand.pid}); stop it first, or use another name\n"

    by_hand.send_signal(signal.SIGINT)
    _, said = by_hand.communicate(timeout=90)
    assert by_hand.returncode == 0
    assert "Traceback" not in said
    assert live.ask("toss a coin")["tool_calls"] == []


def test_one_that_waits_for_a_process_that_is_frozen_in_a_commit_says_so_and_ends_at_once(live, command) -> None:
    (live.config_dir / "my_tools" / "bell.py").write_text(BELL)
    record = live.system.data_dir / "effects" / "bell.db"
    record.parent.mkdir(mode=0o700, exist_ok=True)
    record.touch(0o600)
    with closing(sqlite3.connect(record, isolation_level=None)) as frozen:
        frozen.execute("BEGIN EXCLUSIVE")
        waiting = command(*_words(live, "my_tools.bell:BellTool"))
        assert "bell.db: a process is in the middle of a commit" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=90)
    assert waiting.returncode == 130
    assert "Traceback" not in said


def test_without_a_system_there_is_nothing_to_join(capsys, tmp_path) -> None:
    assert _run_here(["web_search", "--data-dir", tmp_path]) == 2
    assert capsys.readouterr().err == f"local2: no system runs on {tmp_path}; start one with `local2 run`\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["web_serch"], "unknown participant 'web_serch'; did you mean web_search?"),
        (["web_search", "--bus", "tcp://127.0.0.1:5555"], "--bus: expected two addresses as PUB,SUB"),
        (["web_search", "--bogus"], "No such option: --bogus"),
        (["web_search", "--bus", "tcp://127.0.0.1:1,tcp://127.0.0.1:2"], "keys/web_search.keys is missing; copy"),
    ],
)
def test_a_bad_argument_is_one_line(live, capsys, words, complaint) -> None:
    assert _run_here([*words, "--data-dir", live.system.data_dir]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def _run_here(words) -> int:
    """The exit status of `local2 participant` with these words, in this process: for those that it refuses."""
    try:
        return main([*map(str, words)])
    except SystemExit as ended:
        return int(str(ended.code))


def _words(live, target: str) -> list[object]:
    return [BY_HAND, target, "--data-dir", live.system.data_dir, "--config-dir", live.config_dir]
