"""The log as a file."""

from __future__ import annotations

import logging
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from local.runtime.logs import LogFileHandler

Make = Callable[..., LogFileHandler]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "local2.log"


@pytest.fixture
def make(path: Path, request: pytest.FixtureRequest) -> Make:
    """Makes the handlers of several processes."""

    def handler(**options: int) -> LogFileHandler:
        made = LogFileHandler(path, **options)
        request.addfinalizer(made.close)
        return made

    return handler


def say(handler: LogFileHandler, text: str) -> None:
    handler.emit(logging.LogRecord("x", logging.INFO, __file__, 1, text, (), None))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_several_processes_write_one_file_that_is_the_owners_alone(path: Path, make: Make) -> None:
    path.write_text("before\n")
    path.chmod(0o644)
    first, second = make(), make()
    for handler, text in ((first, "one"), (second, "two"), (first, "three\udcff")):
        say(handler, text)
    assert lines(path) == ["before", "one", "two", "three\\udcff"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_file_is_moved_aside_once_and_everybody_goes_on_in_the_new_one(path: Path, make: Make) -> None:
    first, second = make(max_bytes=8, kept=2), make(max_bytes=8, kept=2)
    for text in ("aaaaaaaa", "b", "cccccccc", "d", "eeeeeeee", "f", "gggggggg", "h"):
        say(first, text)
        say(second, text.upper())
    assert sorted(each.name for each in path.parent.iterdir()) == ["local2.log", "local2.log.1", "local2.log.2"]
    said = [text for number in (".2", ".1", "") for text in lines(path.with_name(f"{path.name}{number}"))]
    assert said == ["EEEEEEEE", "f", "F", "gggggggg", "GGGGGGGG", "h", "H"][-len(said) :] and len(said) >= 5


def test_a_file_that_was_moved_away_is_made_anew(path: Path, make: Make) -> None:
    handler = make()
    say(handler, "one")
    path.rename(path.with_name("mine"))
    say(handler, "two")
    assert lines(path) == ["two"]


def test_what_cannot_be_written_is_said_once_until_it_works_again(
    path: Path, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = make()
    path.symlink_to(path.with_name("the file of somebody else"))
    for text in ("one", "two"):
        say(handler, text)
    assert capsys.readouterr().err.count(f"the log file {path} cannot be written: ") == 1
    path.unlink()
    say(handler, "three")
    assert lines(path) == ["three"] and capsys.readouterr().err == ""
