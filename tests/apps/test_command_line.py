"""How every command ends that was given what it cannot take: with one line and exit status 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from local.apps.command_line import exit_status, new_app
from local.apps.command_table import run_command
from local.errors import LocalError


def ended(command: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    """The line of a command that was refused."""
    app = new_app()
    app.command()(command)
    assert exit_status(app, [], "local2") == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_what_is_no_utf8_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def send() -> None:
        quote("caf\udce9")

    assert ended(send, capsys) == "local2: 'caf\\udce9' is no text in UTF-8\n"


def test_text_that_an_output_cannot_show_is_a_fault_of_ours() -> None:
    def show() -> None:
        "é".encode("ascii")

    app = new_app()
    app.command()(show)
    with pytest.raises(UnicodeEncodeError):
        exit_status(app, [], "local2")


def test_a_file_that_cannot_be_used_is_named_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    def look() -> None:
        Path("x" * 5000).stat()

    assert ended(look, capsys) == f"local2: {'x' * 200}: File name too long\n"


def test_what_cannot_be_seen_in_a_refusal_stands_as_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise LocalError("there is no \u202egnp.exe\x1b[2J\nlocal2: all is well")

    assert ended(refuse, capsys) == "local2: there is no \\u202egnp.exe\\x1b[2J\\nlocal2: all is well\n"


@pytest.mark.parametrize("question", ["", "  "])
def test_the_memory_is_not_asked_for_nothing(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["memory", "search", question]) == 2
    assert "QUESTION: is blank; expected a question" in capsys.readouterr().err
