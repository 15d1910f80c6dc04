"""Ready means proven: a probe of the present connection has come back."""

import asyncio

import pytest

from local.bus.sending import Handshake
from local.core.errors import BusClosed, BusNotReady


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


async def test_it_is_ready_when_a_probe_has_come_back(wire: Wire) -> None:
    assert not wire.handshake.is_ready
    await wire.connect()
    assert wire.handshake.is_ready


async def test_no_probe_is_sent_before_somebody_listens(wire: Wire) -> None:
    with pytest.raises(BusNotReady, match=r"the bus at memory: did not answer within 0\.01 s"):
        await wire.handshake.shake("memory:", 0.01)
    assert wire.probes.empty()


async def test_probes_are_repeated_until_one_returns(wire: Wire) -> None:
    wire.handshake.link(True)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.handshake.shake("memory:", 10))
        for _ in range(3):
            await wire.probes.get()
        await wire.bounce()
        await wire.bounce()
    assert wire.handshake.is_ready


async def test_a_probe_that_was_never_sent_proves_nothing(wire: Wire) -> None:
    wire.handshake.link(True)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
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
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
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
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
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


async def test_a_lost_connection_is_not_ready_until_it_is_proven_again(wire: Wire) -> None:
    await wire.connect()
    wire.handshake.link(False)
    assert not wire.handshake.is_ready
    wire.handshake.link(True)
    assert not wire.handshake.is_ready
    await wire.bounce()
    await wire.bounce()
    await wire.handshake.wait()
    assert wire.reconnects == 1


async def test_a_probe_of_the_lost_connection_proves_nothing_about_the_next(wire: Wire) -> None:
    wire.handshake.link(True)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(wire.handshake.shake("memory:", 10))
        stale = await wire.probes.get()
        wire.handshake.returned(stale)
        wire.handshake.link(False)
        await asyncio.sleep(0)
        assert not wire.handshake.is_ready
        wire.handshake.link(True)
        await wire.bounce()
        await wire.bounce()
    assert wire.handshake.is_ready


async def test_a_connection_that_flickers_is_one_reconnection(wire: Wire) -> None:
    await wire.connect()
    for up in (False, True, False, True, False, True):
        wire.handshake.link(up)
        await asyncio.sleep(0)
    while not wire.handshake.is_ready:
        await wire.bounce()
        await asyncio.sleep(0)
    assert wire.reconnects == 1


async def test_closing_ends_a_wait_for_readiness_with_bus_closed(wire: Wire) -> None:
    waiting = asyncio.ensure_future(wire.handshake.shake("memory:", 10))
    await asyncio.sleep(0)
    await wire.handshake.close()
    with pytest.raises(BusClosed):
        await waiting


async def test_closing_stops_a_handshake_under_way(wire: Wire) -> None:
    await wire.connect()
    wire.handshake.link(False)
    wire.handshake.link(True)
    await wire.probes.get()
    await wire.handshake.close()
    assert len(asyncio.all_tasks()) == 1
