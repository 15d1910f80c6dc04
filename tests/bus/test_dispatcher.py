"""What is sent again: news to whoever missed it, a repetition to whoever did not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.receiving import MAX_HOLES, Dispatcher, GapTracker
from local.core.errors import MalformedFrame


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
    tracker = GapTracker(lambda instance, subject, count: missed.append(count))
    tracker.observe("i", "s", 1)
    tracker.observe("i", "s", 4)
    tracker.forget(lambda subject: True)
    assert tracker.observe("i", "s", 9)
    assert not tracker.observe("i", "s", 3)
    assert missed == [2]
