"""What was refused is counted without end and kept within bounds."""

import json
from pathlib import Path

import pytest

from local.bus import receiving as reject_log
from local.bus.receiving import FREE_SAMPLES, RejectLog


class Clock:
    """A clock that moves when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_sample_says_who_refused_what_and_why(tmp_path: Path) -> None:
    log = RejectLog(tmp_path / "rejects")
    log.add("critic", "header: \ud800", b"\xff\x00" + b"x" * 1000)
    line = json.loads((tmp_path / "rejects").read_text())
    assert (line["participant"], line["reason"], line["size"]) == ("critic", "header: \ud800", 1002)
    assert line["head"].startswith("ÿ\0x") and len(line["head"]) == 200


def test_the_first_twenty_are_kept_and_then_one_a_second(tmp_path: Path) -> None:
    clock = Clock()
    log = RejectLog(tmp_path / "rejects", clock=clock)
    for _ in range(1000):
        log.add("critic", "bad", b"x")
    clock.now += 1
    for _ in range(10):
        log.add("critic", "bad", b"x")
    assert log.count == 1010
    assert len((tmp_path / "rejects").read_text().splitlines()) == FREE_SAMPLES + 1


def test_the_file_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reject_log, "MAX_BYTES", 20_000)
    clock = Clock()
    log = RejectLog(tmp_path / "rejects", clock=clock)
    for _ in range(200):
        clock.now += 1
        log.add("critic", "r" * 10_000, b"\xff" * 10_000)
    assert reject_log.MAX_BYTES <= (tmp_path / "rejects").stat().st_size < reject_log.MAX_BYTES + 4096
    assert log.count == 200


def test_a_disk_that_cannot_be_written_costs_the_sample_only(tmp_path: Path) -> None:
    log = RejectLog(tmp_path / "missing" / "rejects")
    log.add("critic", "bad", b"x")
    assert log.count == 1
