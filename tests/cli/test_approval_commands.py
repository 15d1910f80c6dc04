"""`local2 approvals` with a frontend that gives set answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from local.core.errors import NoAnswer
from local.permissions import commands as approval_commands
from tests.cli.answering_frontend import AnsweringFrontend, Json

WAITING: Json = {
    "call_id": "q:0:0", "tool": "write_file", "args": {"path": "a\x1b.txt"}, "level": "L1", "why": "It is new.",
    "expires_at": 0.0,
}  # fmt: skip
QUESTION: Json = {
    "call_id": "q:1:0", "tool": "request_clarification", "args": {"question": "Which?", "options": ["red", "blue\x1b"]},
    "level": "L0", "expires_at": 0.0,
}  # fmt: skip
LEAVE: Json = {"grant_id": 3, "session_id": "s" * 32, "tool": "write_file", "args": {"path": "b.txt"}}
Run = Callable[..., tuple[int, str, str]]


def answer(method: str, path: str) -> Json:
    if path in ("/approvals/gone", "/approvals/remembered/9"):
        raise NoAnswer("not_found", f"nothing waits under {path}")
    return {"approvals": [WAITING, QUESTION], "remembered": [LEAVE]} if method == "GET" else {}


@pytest.fixture
def frontend(found_by: Callable[..., None]) -> AnsweringFrontend:
    frontend = AnsweringFrontend(answer)
    found_by(frontend, approval_commands)
    return frontend


def test_what_waits_and_what_is_remembered_is_listed(frontend: AnsweringFrontend, run: Run) -> None:
    status, out, _ = run("approvals", "list")
    waiting, question, remembered = out.splitlines()
    assert question.startswith("q:1:0  asks you: Which? | red | blue\\x1b  until ")
    assert status == 0 and waiting.startswith("q:0:0  L1  write_file") and waiting.endswith("It is new.")
    assert "\x1b" not in out
    assert remembered.startswith("3  in ssssssss  write_file") and "b.txt" in remembered


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("allow", "q:0:0"), {"decision": "allow", "by": "terminal"}),
        (("allow", "q:0:0", "--session"), {"decision": "allow_session", "by": "terminal"}),
        (("allow", "q:0:0", "--answer", "red"), {"decision": "allow", "answer": "red", "by": "terminal"}),
        (("allow", "q:0:0", "--edits"), {"decision": "allow", "mode": "acceptEdits", "by": "terminal"}),
        (("deny", "q:0:0"), {"decision": "deny", "by": "terminal"}),
        (("deny", "q:0:0", "--answer", "smaller"), {"decision": "deny", "answer": "smaller", "by": "terminal"}),
    ],
)
def test_a_call_is_decided(frontend: AnsweringFrontend, run: Run, arguments: tuple[str, ...], body: Json) -> None:
    status, out, _ = run("approvals", *arguments)
    assert (status, out) == (0, f"q:0:0: {body['decision']}\n")
    assert frontend.asked == [("POST", "/approvals/q%3A0%3A0", body)]


def test_what_is_remembered_is_taken_back(frontend: AnsweringFrontend, run: Run) -> None:
    assert run("approvals", "forget", "3") == (0, "3 is forgotten: such a call asks again\n", "")
    assert frontend.asked == [("DELETE", "/approvals/remembered/3")]


def test_one_that_waits_is_shown_whole(frontend: AnsweringFrontend, run: Run) -> None:
    text = f"ls {'#' * 5000}\nrm \u202e\u3164 -rf ."
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WAITING, "args", {"path": "a", "content": text})
        status, out, _ = run("approvals", "show", "q:0:0")
    assert (status, out.splitlines()[1:]) == (
        0,
        ["  path: a", f"  content: ls {'#' * 5000}", "    rm \\u202e\\u3164 -rf ."],
    )


@pytest.mark.parametrize("arguments", [("allow", "gone"), ("show", "gone"), ("deny", "gone"), ("forget", "9")])
def test_an_unknown_one_is_one_line(frontend: AnsweringFrontend, run: Run, arguments: tuple[str, ...]) -> None:
    status, out, err = run("approvals", *arguments)
    assert status == 2 and out == "" and "nothing waits under" in err and err.count("\n") == 1


def test_without_a_system_one_line_says_so(run: Run, tmp_path: Path) -> None:
    status, out, err = run("approvals", "list", "--data-dir", str(tmp_path))
    assert (status, out) == (2, "") and err.count("\n") == 1
