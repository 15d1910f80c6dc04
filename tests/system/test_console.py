"""`local2 ask` and `local2 chat` with a real system, in a pipeline and on a real terminal."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.cli.command_table import run_command
from tests.system.pseudo_terminal import PseudoTerminal

QUESTION = "What is the capital of France?"
Run = Callable[..., tuple[int, str, str]]
CLI = [sys.executable, "-m", "local.cli.entry"]


@pytest.fixture
def data(live: Any) -> tuple[str, str]:
    return ("--data-dir", str(live.system.data_dir))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `local2` in this process; gives its exit status, output and errors."""

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        status = run_command(arguments)
        return (status, *capfd.readouterr())

    return run


def test_one_question_is_answered_on_the_standard_output_alone(data: tuple[str, str]) -> None:
    command = [*CLI, "ask", "What", "is", "17*23?", *data]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "17*23 = 391\n", "")


def test_what_is_piped_in_is_the_question_or_a_file_that_it_is_about(data: tuple[str, str], run: Run) -> None:
    assert run("ask", *data, stdin="What is 17*23?\n")[1] == "17*23 = 391\n"
    _, answer, _ = run("ask", "What is in the file?", *data, stdin="The quick brown fox")
    assert "attached 'stdin.txt'" in answer
    assert "The quick brown fox" in answer


def test_json_is_one_event_a_line_and_the_last_is_the_answer(data: tuple[str, str], live: Any, run: Run) -> None:
    lines = [json.loads(line) for line in run("ask", "What is 17*23?", "--json", *data)[1].splitlines()]
    assert lines[0]["event"] == "accepted"
    assert lines[-1]["event"] == "response"
    assert lines[-1]["answer"] == live.http.get(f"/query/{lines[0]['query_id']}").json()["answer"] == "17*23 = 391"


def test_a_conversation_is_continued_and_a_query_asked_again_is_the_same_one(
    data: tuple[str, str], live: Any, run: Run
) -> None:
    run("ask", "What is 1+1?", "--session", "to-be-continued", *data)
    run("ask", "What is 2+2?", "--continue", "--query-id", "console-q", *data)
    run("ask", "What is 2+2?", "--resume", "to-be-cont", "--query-id", "console-q", *data)
    turns = live.http.get("/sessions/to-be-continued").json()["turns"]
    assert [turn["query"] for turn in turns] == ["What is 1+1?", "What is 2+2?"]


def test_each_way_to_end_has_its_status_and_its_sentence(data: tuple[str, str], tmp_path: Path, run: Run) -> None:
    statuses = {
        2: [["ask", *data], ["ask", "x", "--think", "aloud", *data], ["ask", "x", "--attach", "/no/such", *data],
            ["ask", "x", "--session", "a", "--continue", *data], ["chat", *data]],
        1: [["ask", "x", "--session", "not valid!", *data]],
        75: [["ask", "x", "--no-start", "--data-dir", str(tmp_path)]],
    }  # fmt: skip
    for status, commands in statuses.items():
        for command in commands:
            ended, shown, said = run(*command)
            assert (ended, shown, said.count("\n")) == (status, "", 1), said
            assert "Traceback" not in said


def test_an_interrupted_question_is_stopped_in_the_system_too(data: tuple[str, str], live: Any) -> None:
    live.model_fails(QUESTION, "chunk_delay", seconds=0.3)
    command = [*CLI, "ask", QUESTION, "--json", *data]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as asking:
        assert asking.stdout is not None
        is_interrupted = False
        for line in asking.stdout:
            event = json.loads(line)
            if event["event"] == "thinking" and not is_interrupted:
                asking.send_signal(signal.SIGINT)  # once: a second one leaves without waiting for the end
                is_interrupted = True
        assert event["status"] == "cancelled"  # its end was waited for
        assert asking.wait(90) == 130
    assert live.http.get(f"/query/{event['query_id']}").json()["status"] == "cancelled"


def test_an_answer_is_whole_although_the_api_is_killed_while_it_comes(data: tuple[str, str], live: Any) -> None:
    live.model_fails(QUESTION, "chunk_delay", seconds=0.3)
    with PseudoTerminal("ask", QUESTION, *data) as terminal:
        terminal.wait_for("answering")
        live.kill("api")
        assert terminal.end() == 0
    assert terminal.text.count("The capital of France is Paris.") == 1


def test_a_reader_that_has_seen_enough_ends_it_quietly(data: tuple[str, str]) -> None:
    done = subprocess.run(
        f"{sys.executable} -m local.cli.entry ask 'What is 17*23?' --json {' '.join(data)} | head -1",
        shell=True, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_a_conversation_on_a_terminal(data: tuple[str, str], live: Any) -> None:
    with PseudoTerminal("chat", *data) as terminal:

        def prompt(number: int) -> None:
            """What is typed before it stands there is for the next one, and not sent."""
            terminal.wait_for("›", times=number)

        prompt(1)
        terminal.type("What is 17*23?\r")
        prompt(2)
        live.model_fails(QUESTION, "chunk_delay", seconds=0.3)
        terminal.type(f"{QUESTION}\r")
        terminal.wait_for("thinking")
        terminal.type("What is 3*3?")  # typed while the answer comes
        terminal.interrupt()
        terminal.wait_for("■ stopped")
        terminal.wait_for("› What is 3*3?")  # kept, and it stands in the next prompt
        terminal.type("\r")
        prompt(4)
        terminal.type("/why\r")
        prompt(5)
        terminal.type("/nonsense\r")
        prompt(6)
        terminal.type("\x04")
        assert terminal.end() == 0
    for said in ("3*3 = 9", "model 0.", "there is no /nonsense; /help lists the commands"):
        assert said in terminal.text
    assert terminal.text.count("17*23 = 391") == 1
    assert b"?1049h" not in terminal.sent  # neither another screen
    assert b"?1000h" not in terminal.sent  # nor the mouse
