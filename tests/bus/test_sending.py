"""Sending: frames in order, again until they are answered, and not before the connection is proven to be ready."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Callable
from itertools import count, pairwise
from typing import Any

import pytest

from local.bus.sending import TICK_SECONDS, Handshake, Retry, RetryTable, SendQueue
from local.core.errors import PublishTimeout
from local.core.files import Backoff

# Retries


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


# The queue of frames that wait for room


class NarrowTransport:
    """A transport with room for a few frames, as a socket at its high-water mark has."""

    address = "narrow:"

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[bytes] = []
        self._space = asyncio.Event()

    def send(self, frame: bytes) -> bool:
        if self.room == 0:
            return False
        self.room -= 1
        self.sent.append(frame)
        return True

    async def writable(self) -> None:
        self._space.clear()
        await self._space.wait()

    def make_room(self, room: int) -> None:
        """As many more frames may leave."""
        self.room += room
        self._space.set()

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None: ...

    def subscribe(self, prefix: bytes) -> None: ...

    def unsubscribe(self, prefix: bytes) -> None: ...

    async def close(self) -> None: ...


class Rig:
    """An send_queue over a narrow transport whose connection is up."""

    def __init__(self, room: int) -> None:
        self.transport = NarrowTransport(room)
        self.counters: Counter[str] = Counter()
        self.handshake = Handshake(self._probe, lambda: None, lambda: None)
        self.send_queue = SendQueue(self.transport, self.handshake, self.counters)

    def _probe(self, number: int) -> None:
        self.handshake.returned(number)

    async def connect(self) -> None:
        """Bring the connection up."""
        self.handshake.link(True)
        await self.handshake.shake("narrow:", 10)

    def start(self, *names: bytes, seconds: float | None = 10) -> list[asyncio.Task[None]]:
        """Send frames at once, each by a publisher of its own."""
        return [asyncio.create_task(self.send_queue.send(name, "s", seconds)) for name in names]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(room=1)
    await rig.connect()
    yield rig
    await rig.send_queue.close()
    await rig.handshake.close()


async def test_frames_that_find_no_room_leave_later_in_order(rig: Rig) -> None:
    sending = rig.start(b"1", b"2", b"3", b"4")
    await sending[0]
    rig.transport.make_room(1)
    await sending[1]
    rig.transport.make_room(10)
    await asyncio.gather(*sending)
    assert rig.transport.sent == [b"1", b"2", b"3", b"4"]
    assert rig.counters == {"published": 4, "waited": 3}


async def test_nobody_overtakes_what_waits(rig: Rig) -> None:
    sending = rig.start(b"1", b"2")
    await sending[0]
    rig.transport.room = 5  # there is room, but the second frame has not left yet
    assert not rig.send_queue.try_send(b"3")
    sending += rig.start(b"4")
    rig.transport.make_room(0)
    await asyncio.gather(*sending)
    assert rig.transport.sent == [b"1", b"2", b"4"]


async def test_a_frame_that_had_left_before_goes_ahead_of_what_waits(rig: Rig) -> None:
    sending = rig.start(b"1", b"2")
    await sending[0]
    rig.transport.room = 1
    rig.send_queue.resend_first(b"0 again")
    rig.transport.make_room(1)
    await asyncio.gather(*sending)
    assert rig.transport.sent == [b"1", b"0 again", b"2"]


async def test_a_wait_that_is_too_long_names_subject_and_seconds(rig: Rig) -> None:
    rig.handshake.link(False)
    with pytest.raises(
        PublishTimeout, match=r"the bus did not take the message query\.received within 0\.01 s; `local2 status`"
    ):
        await rig.send_queue.send(b"1", "query.received", 0.01)
    rig.handshake.link(True)
    await rig.send_queue.send(b"2", "s", 10)
    assert rig.transport.sent == [b"2"]
    assert rig.counters["dropped"] == 1


async def test_a_publisher_that_is_cancelled_takes_its_frame_along(rig: Rig) -> None:
    first, second, third = rig.start(b"1", b"2", b"3")
    await first
    second.cancel()
    rig.transport.make_room(5)
    await third
    assert rig.transport.sent == [b"1", b"3"]
    assert second.cancelled()
    assert rig.counters["dropped"] == 1


# The handshake


class Wire:
    """Keeps probes until the test lets them return."""

    def __init__(self) -> None:
        self.probes: asyncio.Queue[int] = asyncio.Queue()
        self.reconnects = self.listened = 0
        self.handshake = Handshake(self.probes.put_nowait, self._listen, self._count)

    def _count(self) -> None:
        self.reconnects += 1

    def _listen(self) -> None:
        self.listened += 1

    async def bounce(self, number: int | None = None) -> None:
        """Let the next probe return, or pretend that it was another."""
        probe = await self.probes.get()
        self.handshake.returned(probe if number is None else number)

    async def connect(self) -> None:
        """A first handshake."""
        self.handshake.link(True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.handshake.shake("memory:", 10))
            await self.bounce()
            await self.bounce()


@pytest.fixture
async def wire() -> Wire:
    return Wire()


async def test_a_probe_that_was_never_sent_proves_nothing(wire: Wire) -> None:
    wire.handshake.link(True)
    async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.handshake.shake("memory:", 10))
        await wire.bounce(10**9)
        assert not wire.handshake.is_ready
        await wire.bounce()
        await wire.bounce()
    assert wire.handshake.is_ready


async def test_what_was_subscribed_to_is_in_place_when_a_probe_that_was_listened_for_behind_it_is_back(
    wire: Wire,
) -> None:
    wire.handshake.link(True)
    async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.handshake.shake("memory:", 10))
        early = await wire.probes.get()
        assert wire.listened == 0
        wire.handshake.returned(early)
        late = await wire.probes.get()
        assert (wire.listened, wire.handshake.is_ready) == (1, False)
        wire.handshake.returned(early)
        await asyncio.sleep(0)
        assert not wire.handshake.is_ready
        wire.handshake.returned(late)
    assert wire.handshake.is_ready


async def test_a_connection_that_is_lost_between_the_two_probes_is_proven_from_the_beginning(wire: Wire) -> None:
    wire.handshake.link(True)
    async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.handshake.shake("memory:", 10))
        await wire.bounce()
        await wire.probes.get()
        wire.handshake.link(False)
        wire.handshake.link(True)
        for _ in range(2):
            await wire.bounce()
            await asyncio.sleep(0)
            assert not wire.handshake.is_ready
        await wire.bounce()
    assert (wire.handshake.is_ready, wire.listened) == (True, 2)


async def test_a_connection_that_flickers_is_one_reconnection(wire: Wire) -> None:
    await wire.connect()
    for up in (False, True, False, True, False, True):
        wire.handshake.link(up)
        await asyncio.sleep(0)
    while not wire.handshake.is_ready:
        await wire.bounce()
        await asyncio.sleep(0)
    assert wire.reconnects == 1


async def test_closing_stops_a_handshake_under_way(wire: Wire) -> None:
    await wire.connect()
    wire.handshake.link(False)
    wire.handshake.link(True)
    await wire.probes.get()
    await wire.handshake.close()
    assert len(asyncio.all_tasks()) == 1
