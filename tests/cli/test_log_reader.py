"""What `local2 logs` shows: records of the log file and of those moved aside, a choice of them, and what comes."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from local.cli.entry import main
from local.runtime.log_reader import LogFollower, LogSelection, read_log

OLD = "2026-05-01 11:00:00.000 info generator - begins\n"
NEW = (
    "2026-05-01 12:00:00.000 warning web_search q7 no answer\n"
    "Traceback (most recent call last):\n"
    "OSError: \x1b[2J\n"
    "2026-05-01 12:00:01.500 info generator q7 goes on\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "logs" / "local2.log"
    file.parent.mkdir()
    file.with_name("local2.log.1").write_text(OLD)
    file.write_text(NEW)
    return file


def logs(path: Path, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str], str]:
    with pytest.raises(SystemExit) as ended:
        main(["logs", "--data-dir", str(path.parents[1]), "--config-dir", str(path.parents[1]), *options])
    out, err = capfd.readouterr()
    return int(str(ended.value.code)), out.splitlines(), err


def test_what_was_moved_aside_comes_first_and_a_traceback_belongs_to_its_message(path: Path) -> None:
    records = list(read_log(path))
    assert [(record.participant, record.query_id) for record in records] == [
        ("generator", "-"), ("web_search", "q7"), ("generator", "q7"),
    ]  # fmt: skip
    assert records[1].message.split("\n")[1:] == ["Traceback (most recent call last):", "OSError: \\x1b[2J"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), ["begins", "no answer", "goes on"]),
        (("generator",), ["begins", "goes on"]),
        (("--level", "warning"), ["no answer"]),
        (("--since", "2026-05-01T12:00:01"), ["goes on"]),
        (("--query", "q7", "generator"), ["goes on"]),
        (("-n", "1"), ["goes on"]),
    ],
)
def test_records_are_chosen(
    path: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...], shown: list[str]
) -> None:
    status, lines, _ = logs(path, capfd, "--json", *options)
    assert (status, [json.loads(line)["message"].split("\n")[0] for line in lines]) == (0, shown)


def test_a_record_as_json_has_its_time_in_seconds(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = json.loads(logs(path, capfd, "--json")[1][0])
    at = datetime(2026, 5, 1, 11).timestamp()
    assert first == {"at": at, "level": "info", "participant": "generator", "query_id": None, "message": "begins"}


def test_where_there_is_no_log_it_says_where_it_would_be(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path.unlink()
    status, lines, err = logs(path, capfd)
    assert (status, lines, err.startswith(f"local2: there is no log at {path}; ")) == (2, [], True)


def test_what_comes_is_followed_into_the_next_file(path: Path) -> None:
    with LogFollower(path) as follower:
        assert follower.offset == len(NEW.encode())
        with path.open("a") as file:
            file.write("2026-05-01 12:00:02.000 info api - one\n2026-05-01 12:00:03.000 info api - tw")
            file.flush()
            assert [record.message for record in follower.news()] == ["one"]
            file.write("o\n")
        path.rename(path.with_name("local2.log.2"))
        path.write_text("2026-05-01 12:00:04.000 info api - three\n")
        assert [record.message for record in follower.news()] == ["two", "three"]
        assert list(follower.news()) == []


def test_a_log_that_begins_later_is_followed_from_its_beginning(tmp_path: Path) -> None:
    with LogFollower(tmp_path / "local2.log") as follower:
        assert (follower.offset, list(follower.news())) == (0, [])
        (tmp_path / "local2.log").write_text(OLD)
        assert [record.message for record in filter(LogSelection().wants, follower.news())] == ["begins"]
