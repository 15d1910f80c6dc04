"""Receiving: losses are counted exactly, repeats are distinguished, refused frames sampled within bounds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus import receiving
from local.bus.envelope import Envelope
from local.bus.receiving import FREE_SAMPLES, MAX_HOLES, Dispatcher, GapTracker, RejectLog
from local.core.errors import MalformedFrame

# Losses


class Tracked:
    """A tracker and what it has reported."""

    def __init__(self) -> None:
        self.missed: Counter[str] = Counter()
        self.tracker = GapTracker(self._note)

    def hear(self, *numbers: int, instance: str = "i", subject: str = "s") -> list[bool]:
        """Observe these numbers of one stream."""
        return [self.tracker.observe(("sender", instance), subject, number) for number in numbers]

    def beat(self, wanted: Callable[[str], bool] = lambda subject: True, instance: str = "i", **last_seq: int) -> None:
        """A status beat of an instance."""
        self.tracker.beat(("sender", instance), last_seq, wanted)

    def _note(self, process: tuple[str, str], subject: str, missed: int) -> None:
        self.missed[subject] += missed


@pytest.fixture
def tracked() -> Tracked:
    return Tracked()


STORIES: dict[str, tuple[Callable[[Tracked], object], dict[str, int]]] = {
    "an unbroken stream": (lambda it: it.hear(1, 2, 3), {}),
    "a hole in the middle is counted once": (lambda it: it.hear(1, 2, 6, 7), {"s": 3}),
    "a repeat is no gap": (lambda it: it.hear(1, 2, 2, 1, 3), {}),
    "a listener that comes late": (lambda it: (it.hear(500, 501), it.beat(s=501)), {}),
    "a loss at the very end shows once": (lambda it: (it.hear(1, 2), it.beat(s=5), it.beat(s=5)), {"s": 3}),
    "a stream of which nothing arrived": (lambda it: (it.beat(), it.beat(s=4)), {"s": 4}),
    "a loss at the beginning": (lambda it: (it.beat(), it.hear(3)), {"s": 2}),
    "the first beat of a sender is a starting point": (lambda it: (it.beat(s=100), it.hear(101, 103)), {"s": 1}),
    "a subject that is not wanted": (lambda it: (it.beat(), it.beat(lambda name: name == "s", s=1, t=9)), {"s": 1}),
    "another instance": (lambda it: (it.hear(1, 2), it.hear(1, instance="restarted")), {}),
    "another subject": (lambda it: (it.hear(1, 2), it.hear(1, subject="t")), {}),
}


@pytest.mark.parametrize("story", STORIES)
def test_losses_are_counted_exactly(tracked: Tracked, story: str) -> None:
    happens, missed = STORIES[story]
    happens(tracked)
    assert tracked.missed == missed


def test_a_listener_that_comes_late_to_a_subject_without_beats_has_missed_nothing(tracked: Tracked) -> None:
    tracked.beat(s=1)
    assert tracked.tracker.observe("i", "journal.attach", 167)
    assert not tracked.missed


def test_a_message_before_a_subscription_is_not_a_loss(tracked: Tracked) -> None:
    tracked.beat()
    tracked.hear(1, 2, subject="other")
    tracked.tracker.forget(lambda subject: subject == "s")
    tracked.hear(7, 9)
    tracked.hear(5, subject="other")
    assert tracked.missed == {"s": 1, "other": 2}


def test_forgetting_a_stream_for_want_of_room_invents_no_loss(
    tracked: Tracked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "MAX_STREAMS", 10)
    tracked.beat(instance="old")
    tracked.hear(*range(1, 100), instance="old")
    for number in range(20):
        tracked.hear(1, instance=f"new{number}")
    tracked.hear(100, instance="old")
    assert not tracked.missed


def test_a_stream_that_beats_is_kept_when_room_is_needed(tracked: Tracked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "MAX_STREAMS", 10)
    tracked.beat(instance="old")
    tracked.hear(1, instance="old")
    for number in range(20):
        tracked.hear(1, instance=f"new{number}")
        tracked.beat(instance="old", s=1)
    tracked.hear(5, instance="old")
    assert tracked.missed == {"s": 3}


# Repeats


class Listener:
    """A dispatcher, with a receiver that wants everything and one that wants what is new."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.dispatcher = Dispatcher("me", "here", self.counters, None, lambda *_: True, lambda _: None)
        self.new: list[int] = []
        self.all: list[int] = []
        self.dispatcher.add("query.received", self._note(self.new), repeats=False)
        self.dispatcher.add("query.received", self._note(self.all), repeats=True)

    def hear(self, *numbers: int) -> None:
        for seq in numbers:
            self.dispatcher.on_frame(Envelope("query.received", f"{seq}", "you", "there", seq, "q", b"{}").encode())

    def _note(self, where: list[int]) -> Any:
        return lambda envelope: where.append(envelope.seq)


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_a_repetition_reaches_those_alone_who_asked_for_repetitions(listener: Listener) -> None:
    listener.hear(1, 2, 2, 1, 3)
    assert listener.new == [1, 2, 3]
    assert listener.all == [1, 2, 2, 1, 3]
    assert listener.counters["repeated"] == 2


def test_what_was_missed_and_is_sent_again_is_news_once(listener: Listener) -> None:
    listener.hear(1, 5, 3, 3, 2, 4, 4, 5)
    assert listener.new == [1, 5, 3, 2, 4]
    assert listener.counters["missed"] == 3


def test_a_receiver_that_cannot_read_what_it_got_is_counted_and_the_next_one_gets_it(listener: Listener) -> None:
    def cannot_read(envelope: Envelope) -> None:
        raise MalformedFrame("no such field")

    late: list[int] = []
    listener.dispatcher.add("query.received", cannot_read, repeats=False)
    listener.dispatcher.add("query.received", lambda envelope: late.append(envelope.seq), repeats=False)
    listener.hear(1, 2)
    assert late == [1, 2]
    assert listener.counters["malformed"] == 2


def test_holes_are_filled_number_by_number_and_streams_kept_apart() -> None:
    tracker = GapTracker(lambda *_: None)
    assert tracker.observe("i", "s", 1)
    tracker.observe("i", "s", 10)
    assert [tracker.observe("i", "s", seq) for seq in (2, 9, 5, 5, 4, 6, 1, 10)] == [
        *[True, True, True, False, True, True, False, False]
    ]
    assert not tracker.observe("i", "s", 2)


def test_the_oldest_holes_of_a_stream_are_forgotten_first() -> None:
    tracker = GapTracker(lambda *_: None)
    for seq in range(1, 2 * (MAX_HOLES + 2), 2):
        tracker.observe("i", "s", seq)
    assert not tracker.observe("i", "s", 2)
    assert tracker.observe("i", "s", 4)


def test_a_subscription_that_begins_anew_makes_no_hole_of_what_went_by_before() -> None:
    missed: list[int] = []
    tracker = GapTracker(lambda process, subject, count: missed.append(count))
    tracker.observe("i", "s", 1)
    tracker.observe("i", "s", 4)
    tracker.forget(lambda subject: True)
    assert tracker.observe("i", "s", 9)
    assert not tracker.observe("i", "s", 3)
    assert missed == [2]


# Refused frames


class Clock:
    """A clock that is set by the test."""

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
    monkeypatch.setattr(receiving, "MAX_BYTES", 20_000)
    clock = Clock()
    log = RejectLog(tmp_path / "rejects", clock=clock)
    for _ in range(200):
        clock.now += 1
        log.add("critic", "r" * 10_000, b"\xff" * 10_000)
    assert receiving.MAX_BYTES <= (tmp_path / "rejects").stat().st_size < receiving.MAX_BYTES + 4096
    assert log.count == 200


def test_a_disk_that_cannot_be_written_costs_the_sample_only(tmp_path: Path) -> None:
    log = RejectLog(tmp_path / "missing" / "rejects")
    log.add("critic", "bad", b"x")
    assert log.count == 1
