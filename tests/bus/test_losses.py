"""Losses are counted exactly: in the middle, at the end, and never where nothing was lost."""

from collections import Counter
from collections.abc import Callable

import pytest

from local.bus import receiving as dispatcher
from local.bus.receiving import GapTracker


class Listener:
    """A tracker and what it has reported."""

    def __init__(self) -> None:
        self.missed: Counter[str] = Counter()
        self.tracker = GapTracker(self._note)

    def hear(self, *numbers: int, instance: str = "i", subject: str = "s") -> list[bool]:
        """Observe these numbers of one stream."""
        return [self.tracker.observe(instance, subject, number) for number in numbers]

    def beat(self, wanted: Callable[[str], bool] = lambda subject: True, instance: str = "i", **last_seq: int) -> None:
        """A status beat of an instance."""
        self.tracker.beat(instance, last_seq, wanted)

    def _note(self, instance: str, subject: str, missed: int) -> None:
        self.missed[subject] += missed


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_an_unbroken_stream_has_no_gap(listener: Listener) -> None:
    assert listener.hear(1, 2, 3) == [True, True, True]
    assert not listener.missed


def test_a_hole_in_the_middle_is_counted_once(listener: Listener) -> None:
    listener.hear(1, 2, 6, 7)
    assert listener.missed == {"s": 3}


def test_a_number_that_comes_again_is_a_repetition_and_no_gap(listener: Listener) -> None:
    assert listener.hear(1, 2, 2, 1, 3) == [True, True, False, False, True]
    assert not listener.missed


def test_a_listener_that_comes_late_has_missed_nothing(listener: Listener) -> None:
    listener.hear(500, 501)
    listener.beat(s=501)
    assert not listener.missed


def test_a_listener_that_comes_late_to_what_no_beat_tells_of_has_missed_nothing(listener: Listener) -> None:
    listener.beat(s=1)
    assert listener.tracker.observe("i", "journal.attach", 167)
    assert not listener.missed


def test_a_loss_at_the_very_end_shows_with_the_next_beat(listener: Listener) -> None:
    listener.hear(1, 2)
    listener.beat(s=5)
    listener.beat(s=5)
    assert listener.missed == {"s": 3}


def test_a_stream_of_which_nothing_ever_arrived_shows_when_its_sender_was_known(listener: Listener) -> None:
    listener.beat()
    listener.beat(s=4)
    assert listener.missed == {"s": 4}


def test_a_loss_at_the_beginning_shows_when_the_sender_was_known(listener: Listener) -> None:
    listener.beat()
    listener.hear(3)
    assert listener.missed == {"s": 2}


def test_the_first_beat_of_a_stranger_is_only_a_starting_point(listener: Listener) -> None:
    listener.beat(s=100)
    listener.hear(101, 103)
    assert listener.missed == {"s": 1}


def test_what_is_not_wanted_is_not_missed(listener: Listener) -> None:
    listener.beat()
    listener.beat(wanted=lambda subject: subject == "s", s=1, other=9)
    assert listener.missed == {"s": 1}


def test_streams_are_told_apart_by_instance_and_subject(listener: Listener) -> None:
    listener.hear(1, 2)
    listener.hear(1, instance="restarted")
    listener.hear(1, subject="t")
    assert not listener.missed


def test_what_went_by_before_a_subscription_is_not_a_loss(listener: Listener) -> None:
    listener.beat()
    listener.hear(1, 2, subject="other")
    listener.tracker.forget(lambda subject: subject == "s")
    listener.hear(7, 9)
    listener.hear(5, subject="other")
    assert listener.missed == {"s": 1, "other": 2}


def test_forgetting_a_stream_for_want_of_room_invents_no_loss(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "MAX_STREAMS", 10)
    listener.beat(instance="old")
    listener.hear(*range(1, 100), instance="old")
    for number in range(20):
        listener.hear(1, instance=f"new{number}")
    listener.hear(100, instance="old")
    assert not listener.missed


def test_a_stream_that_beats_is_kept_when_room_is_needed(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "MAX_STREAMS", 10)
    listener.beat(instance="old")
    listener.hear(1, instance="old")
    for number in range(20):
        listener.hear(1, instance=f"new{number}")
        listener.beat(instance="old", s=1)
    listener.hear(5, instance="old")
    assert listener.missed == {"s": 3}
