"""What waits for a person is asked at the terminal: one at a time, once, and by keys that mean one thing."""

from __future__ import annotations

import io
import os
import pty
import termios
from collections.abc import Iterator
from typing import Any

import pytest

from local.cli.approvals import FOLDER_KEYS, KEYS, PLAN_KEYS, ApprovalPrompt, question_of
from local.core.errors import NoAnswer

Json = dict[str, Any]
ASKED: Json = {
    "call_id": "q:0:0", "tool": "write_file", "level": "L1", "why": "It can be undone.",
    "args": {"path": "a.txt", "content": "milk\n\x1b[31mtea"}, "sources": ["example.org"],
}  # fmt: skip
QUESTION: Json = {
    "call_id": "q:1:0", "tool": "request_clarification", "args": {"question": "Which?", "options": ["red", "blue"]},
}  # fmt: skip


class Terminal:
    """Where somebody types, and what is decided and written there."""

    def __init__(self, typing: int) -> None:
        self.decided: list[tuple[str, Json]] = []
        self.written = io.StringIO()
        self.trouble: NoAnswer | None = None
        self.prompt = ApprovalPrompt(self._decide, self.written.write)
        self._typing = typing

    def type(self, line: str) -> None:
        """Somebody types a line, and the prompt looks."""
        os.write(self._typing, f"{line}\n".encode())
        self.prompt.poll()

    def _decide(self, call_id: str, body: Json) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.decided.append((call_id, body))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    reading, writing = os.pipe()
    with os.fdopen(reading) as typed, os.fdopen(writing, "wb"):
        monkeypatch.setattr("sys.stdin", typed)
        yield Terminal(writing)


@pytest.mark.parametrize(
    ("line", "decision"),
    [("y", "allow"), ("YES", "allow"), ("a", "allow_session"), ("n", "deny"), ("no", "deny")],
)
def test_a_key_decides(terminal: Terminal, line: str, decision: str) -> None:
    terminal.prompt.receive("approval", ASKED)
    assert terminal.prompt.is_open
    terminal.prompt.poll()
    assert terminal.written.getvalue() == question_of(ASKED)
    terminal.type(line)
    assert terminal.decided == [("q:0:0", {"decision": decision, "by": "terminal"})]
    terminal.prompt.receive("approval", ASKED)  # a stream that was broken tells it again
    assert not terminal.prompt.is_open


@pytest.mark.parametrize("line", ["", "yy", "1", "allow everything"])
def test_another_line_decides_nothing_and_is_asked_again(terminal: Terminal, line: str) -> None:
    terminal.prompt.receive("approval", ASKED)
    terminal.prompt.poll()
    terminal.type(line)
    assert terminal.decided == [] and terminal.prompt.is_open
    assert terminal.written.getvalue().endswith(KEYS * 2)


def test_a_question_shows_the_call_its_reasons_and_no_orders_to_the_terminal() -> None:
    long = f"ls {'#' * 5000} rm -rf ."
    text = question_of({**ASKED, "args": {"content": ASKED["args"]["content"], "long": long}})
    assert "write_file (L1) needs approval. It can be undone." in text
    assert "  content: milk\n    \\x1b[31mtea" in text
    assert "[3012 of 5012 characters are not shown; see them with: local2 approvals show q:0:0]" in text
    assert len(text) < 2500 and "\n    ####" in text and "# rm -rf .\n" in text, "orders often stand at the end"
    assert "This conversation contains untrusted content from example.org." in text


def test_what_is_decided_elsewhere_is_withdrawn_and_the_next_is_asked(terminal: Terminal) -> None:
    terminal.prompt.receive("approval", ASKED)
    terminal.prompt.receive("approval", QUESTION)
    terminal.prompt.poll()
    terminal.prompt.receive("decision", {"call_id": "q:0:0", "decision": "deny", "by": "page"})
    assert terminal.written.getvalue().endswith("\ndeny, by page\n")
    terminal.prompt.poll()
    assert terminal.written.getvalue().endswith(question_of(QUESTION))
    terminal.type("2")
    assert terminal.decided == [("q:1:0", {"decision": "allow", "answer": "blue", "by": "terminal"})]


@pytest.mark.parametrize(
    ("line", "body"),
    [("green", {"decision": "allow", "answer": "green"}), ("3", {"decision": "allow", "answer": "3"}),
     ("", {"decision": "deny"})],
)  # fmt: skip
def test_the_model_is_answered_in_words_or_not(terminal: Terminal, line: str, body: Json) -> None:
    terminal.prompt.receive("approval", QUESTION)
    terminal.prompt.poll()
    terminal.type(line)
    assert terminal.decided == [("q:1:0", {**body, "by": "terminal"})]


def test_a_question_of_the_model_names_whose_words_may_be_why_it_asks() -> None:
    shown = question_of({**QUESTION, "sources": ["evil.example\x1b"]})
    assert "This conversation contains untrusted content from evil.example" in shown and "\x1b" not in shown
    assert "untrusted" not in question_of(QUESTION)


def test_what_was_typed_before_answers_nothing_and_the_terminal_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing, reading = pty.openpty()
    kept: list[str] = []
    decided: list[str] = []
    with os.fdopen(reading) as typed, os.fdopen(typing, "wb"):
        monkeypatch.setattr("sys.stdin", typed)
        settings = termios.tcgetattr(reading)
        settings[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(reading, termios.TCSANOW, settings)
        os.write(typing, b"y")
        prompt = ApprovalPrompt(lambda call_id, body: decided.append(call_id), lambda text: None, kept.append)
        prompt.receive("approval", ASKED)
        prompt.poll()
        assert termios.tcgetattr(reading)[3] & termios.ECHO, "what is typed now is shown"
        assert kept == ["y"] and decided == []
        prompt.close()  # as after Ctrl-C, while it still asks
        assert termios.tcgetattr(reading)[3] == settings[3]
        assert prompt.is_open and decided == []


def test_a_decision_that_is_refused_is_told(terminal: Terminal) -> None:
    terminal.trouble = NoAnswer("conflict", "it is decided")
    terminal.prompt.receive("approval", ASKED)
    terminal.prompt.poll()
    terminal.type("y")
    assert terminal.written.getvalue().endswith("it is decided\n")
    assert not terminal.prompt.is_open


PLAN: Json = {
    "call_id": "q:2:0", "tool": "propose_plan", "args": {"title": "A\x1b list", "steps": ["write it", "read it"]},
    "sources": ["example.org"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("y", {"decision": "allow"}),
        ("E", {"decision": "allow", "mode": "acceptEdits"}),
        ("no", {"decision": "deny"}),
        ("read it first", {"decision": "deny", "answer": "read it first"}),
    ],
)
def test_a_plan_is_approved_by_a_key_and_words_say_what_is_to_be_different(
    terminal: Terminal, line: str, body: Json
) -> None:
    terminal.prompt.receive("approval", PLAN)
    terminal.prompt.poll()
    terminal.type("")
    assert terminal.decided == []
    terminal.type(line)
    assert terminal.decided == [("q:2:0", {**body, "by": "terminal"})]


@pytest.mark.parametrize(("line", "decision"), [("y", "allow"), ("n", "deny")])
def test_whether_a_folder_is_trusted_is_not_answered_for_one_conversation(
    terminal: Terminal, line: str, decision: str
) -> None:
    asked = {"call_id": "q:0:0:folder", "tool": "trust_folder", "args": {"folder": "/srv/x\x1b"}, "why": "Because."}
    terminal.prompt.receive("approval", asked)
    terminal.prompt.poll()
    assert r"Do you trust /srv/x\x1b?" in terminal.written.getvalue() and "Because." in terminal.written.getvalue()
    terminal.type("a")
    assert terminal.decided == [] and terminal.written.getvalue().endswith(FOLDER_KEYS)
    terminal.type(line)
    assert terminal.decided == [("q:0:0:folder", {"decision": decision, "by": "terminal"})]


def test_a_plan_is_shown_with_all_its_steps() -> None:
    assert question_of(PLAN).splitlines() == [
        "", r"A plan: A\x1b list", "  1. write it", "  2. read it",
        "  This conversation contains untrusted content from example.org.", PLAN_KEYS,
    ]  # fmt: skip
