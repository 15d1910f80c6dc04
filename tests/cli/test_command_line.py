"""How every command ends that was given what it cannot take: with one line and exit status 2."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from local.cli.command_table import run_command
from local.cli.main import exit_status, new_app
from local.core.errors import LocalError

NO_UTF8 = "is not UTF-8 text; write it in UTF-8 (`iconv -t UTF-8` makes it so)"


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

    assert ended(send, capsys) == f"local2: 'caf\\xe9' {NO_UTF8}\n"


def test_a_question_that_is_no_utf8_is_refused_by_the_command_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["ask", "where is", "the caf\udce9 of “Ada”?", "--api", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == f"local2: 'caf\\xe9' {NO_UTF8}\n"


def test_what_is_no_utf8_is_told_before_a_system_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["approvals", "deny", "c1", "--answer", "n\udcfb", "--api", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == f"local2: 'n\\xfb' {NO_UTF8}\n"


@pytest.mark.parametrize("command", [["ask"], ["tap", "pub", "query.cancel", "-"]], ids=" ".join)
def test_what_is_piped_in_and_no_utf8_is_named_with_its_line(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"What is\nthe caf\xe9 of Ada?")))
    assert run_command([*command, "--data-dir", "/nowhere"]) == 2
    assert capsys.readouterr().err == f"local2: the standard input, line 2: 'caf\\xe9' {NO_UTF8}\n"


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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EBADF, "Bad file descriptor", 7), "the open file number 7: Bad file descriptor"),
        (OSError(errno.EACCES, "Permission denied", b"/caf\xe9"), "/caf\\udce9: Permission denied"),
        (
            OSError(errno.EMFILE, "Too many open files"),
            "the operating system refuses a required operation: Too many open files",
        ),
    ],
    ids=["a number", "bytes", "nothing"],
)
def test_whatever_the_system_refuses_is_one_line(error: OSError, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def touch() -> None:
        raise error

    assert ended(touch, capsys) == f"local2: {said}\n"


def test_what_cannot_be_seen_in_a_refusal_stands_as_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise LocalError("there is no \u202egnp.exe\x1b[2J\nlocal2: all is well")

    assert ended(refuse, capsys) == "local2: there is no \\u202egnp.exe\\x1b[2J\\nlocal2: all is well\n"


@pytest.mark.parametrize("question", ["", "  "])
def test_the_memory_is_not_asked_for_nothing(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["memory", "search", question]) == 2
    assert "QUESTION: is blank; expected a question" in capsys.readouterr().err
