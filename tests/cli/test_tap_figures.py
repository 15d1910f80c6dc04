"""What `tap list` and `tap hz` compute."""

from __future__ import annotations

import json

import pytest

from local.bus.envelope import Envelope
from local.cli.tap_stats import ArrivalRate, SubjectTable


def table() -> SubjectTable:
    counted = SubjectTable()
    for sender, payload in (("b", b"{}"), ("a", b'{"x": 1}'), ("a", b"{}")):
        counted.add(Envelope("tool.schema", "id", sender, "instance", 1, "q", payload))
    counted.add(Envelope("bus.gap", "id", "c\x1b", "instance", 1, "q", b"{}"))
    return counted


def test_the_table_counts_messages_bytes_and_publishers() -> None:
    figures = json.loads(table().as_json(2.0))
    assert figures["seconds"] == 2.0
    assert figures["subjects"][1] == {
        "subject": "tool.schema", "count": 3, "rate": 1.5, "bytes": 12, "mean_bytes": 4.0, "publishers": ["a", "b"],
    }  # fmt: skip


def test_the_table_for_people_has_the_busiest_first_and_nothing_that_controls_a_terminal() -> None:
    head, *rows = table().as_text(2.0)
    assert head.split() == ["subject", "count", "rate/s", "bytes", "mean", "publishers"]
    assert [row.split()[0] for row in rows] == ["tool.schema", "bus.gap"]
    assert rows[0].split()[1:] == ["3", "1.5", "12", "4", "a,", "b"]
    assert rows[1].endswith("c\\x1b")


def test_the_rate_is_that_of_the_last_intervals() -> None:
    intervals = ArrivalRate(window=2)
    for now in (0.0, 9.0, 10.0, 10.5, 11.5):
        intervals.add(now)
    assert intervals.report() == "average rate: 1.333  min: 0.5000s max: 1.0000s std dev: 0.25000s window: 2"


def test_silence_is_reported_as_such() -> None:
    intervals = ArrivalRate(window=10)
    assert intervals.report() == "no new messages"
    intervals.add(1.0)
    assert intervals.report() == "one message, no interval yet"
    intervals.add(2.0)
    assert intervals.report().startswith("average rate: 1.000")
    assert intervals.report() == "no new messages"


@pytest.mark.parametrize("window", [1, 5])
def test_messages_of_the_same_instant_have_no_finite_rate(window: int) -> None:
    intervals = ArrivalRate(window)
    intervals.add(1.0)
    intervals.add(1.0)
    assert "average rate: inf" in intervals.report()
