"""Frames that are sent until they are answered, or a limit; on a clock that a test turns."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest

from local.bus.sending import TICK_SECONDS, Retry, RetryTable
from local.core.files import Backoff

SOON = 1e-9


class Clock:
    """Timers that go off when the test lets time pass."""

    def __init__(self) -> None:
        self._now, self._count = 0.0, count()
        self.timers: list[tuple[float, int, Callable[[], None], asyncio.TimerHandle]] = []

    def time(self) -> float:
        return self._now

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def call_at(self, when: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, action, (), asyncio.get_running_loop())
        heapq.heappush(self.timers, (when, next(self._count), action, handle))
        return handle

    def waiting(self) -> int:
        return sum(not handle.cancelled() for *_, handle in self.timers)

    def pass_until(self, moment: float) -> None:
        while self.timers and self.timers[0][0] <= moment + SOON:
            when, _, action, handle = heapq.heappop(self.timers)
            self._now = max(self._now, when)
            if not handle.cancelled():
                action()
        self._now = moment


class Sender:
    """A table, and when it has sent what."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.sent: list[tuple[float, bytes]] = []
        clock: Any = self.clock
        self.table: RetryTable[str] = RetryTable(
            lambda frame: self.sent.append((round(self.clock.time(), 2), frame)), lambda: clock
        )

    def send(self, name: str, seconds: float = 60) -> Retry[str]:
        retry = self.table.open(name, Backoff(0.1, 1.0), seconds, lambda: TimeoutError(name))
        self.table.left(retry, name.encode())
        return retry

    def sent_by(self, moment: float) -> list[tuple[float, bytes]]:
        self.clock.pass_until(moment)
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
async def sender() -> Sender:
    return Sender()


async def test_the_same_frame_goes_again_after_pauses_that_double_up_to_the_longest(sender: Sender) -> None:
    sender.send("a")
    times = [0.0, *(moment for moment, _ in sender.sent_by(4.3))]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0], abs=1.01 * TICK_SECONDS)


async def test_an_answer_ends_the_wait_of_all_who_await_it_and_no_timer_runs_for_nothing(sender: Sender) -> None:
    first, second, other = sender.send("a"), sender.send("a"), sender.send("b")
    sender.table.answered("a", "yes")
    sender.table.answered("of somebody else", "yes")
    assert (first.answer.result(), second.answer.result(), other.answer.done()) == ("yes", "yes", False)
    assert {frame for _, frame in sender.sent_by(1)} == {b"b"}
    sender.table.answered("b", "yes")
    assert sender.sent_by(9) == []
    assert (len(sender.table), sender.clock.waiting()) == (0, 0)


async def test_each_fails_at_its_own_limit(sender: Sender) -> None:
    patient, impatient = sender.send("a"), sender.send("a", seconds=0.25)
    sender.clock.pass_until(0.3)
    assert isinstance(impatient.answer.exception(), TimeoutError)
    assert not patient.answer.done()
    sender.table.answered("a", "late for one")
    assert patient.answer.result() == "late for one"


async def test_one_that_has_not_left_is_not_sent_again_and_has_its_limit_all_the_same(sender: Sender) -> None:
    retry = sender.table.open("a", Backoff(0.1, 1.0), 1.0)
    sender.table.hasten()
    assert sender.sent_by(1.1) == []
    assert isinstance(retry.answer.exception(), TimeoutError)


async def test_one_that_nobody_awaits_any_more_is_not_sent_again(sender: Sender) -> None:
    ended, cancelled, refused = sender.send("a"), sender.send("b"), sender.send("c")
    sender.table.end(ended)
    sender.table.end(ended)
    cancelled.answer.cancel()
    sender.table.refused("c", ValueError("no room"))
    assert sender.sent_by(9) == []
    assert "a" not in sender.table
    assert "b" not in sender.table
    assert isinstance(refused.answer.exception(), ValueError)


async def test_what_may_be_lost_goes_again_at_once_and_its_pauses_begin_anew(sender: Sender) -> None:
    sender.send("a")
    sender.sent_by(5)
    first: list[bytes] = []
    sender.table.hasten(first.append)
    assert first == [b"a"]
    assert [moment for moment, _ in sender.sent_by(5.4)] == pytest.approx([5.1, 5.3], abs=2 * TICK_SECONDS)


async def test_a_later_one_that_is_due_before_the_others_goes_in_time(sender: Sender) -> None:
    sender.send("a")
    sender.sent_by(3)
    sender.send("b")
    assert sender.sent_by(3.15)[0][1] == b"b"


async def test_closing_fails_everything_and_sends_nothing_more(sender: Sender) -> None:
    retry = sender.send("a")
    sender.table.close(lambda: ConnectionError("closed"))
    assert isinstance(retry.answer.exception(), ConnectionError)
    assert sender.sent_by(9) == []
