"""Frames leave in the order they were handed over, whatever the wire does, and nobody waits for ever."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from local.bus.sending import Handshake, SendQueue
from local.core.errors import BusClosed, PublishTimeout


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


async def test_with_room_a_frame_leaves_at_once(rig: Rig) -> None:
    await rig.send_queue.send(b"1", "s", 10)
    assert rig.transport.sent == [b"1"]
    assert rig.counters == {"published": 1}


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


async def test_without_a_connection_a_frame_waits_for_one(rig: Rig) -> None:
    rig.handshake.link(False)
    assert not rig.send_queue.try_send(b"0")
    sending = rig.start(b"1")
    await asyncio.sleep(0)
    assert rig.transport.sent == []
    rig.handshake.link(True)
    await asyncio.gather(*sending)
    assert rig.transport.sent == [b"1"]


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


async def test_closing_fails_what_waits_and_what_comes_later(rig: Rig) -> None:
    waiting = rig.start(b"1", b"2", b"3")[1:]
    await asyncio.sleep(0)
    await rig.send_queue.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [BusClosed, BusClosed]
    with pytest.raises(BusClosed):
        await rig.send_queue.send(b"4", "s", 10)
    assert not rig.send_queue.try_send(b"5")
    assert rig.transport.sent == [b"1"]
