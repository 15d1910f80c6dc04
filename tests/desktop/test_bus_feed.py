"""The window's connection to the bus, without a window."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.messages import GenerationToken, QueryReceived
from local.core.data_dir import RunDirectory
from local.desktop.bus_feed import BusFeed
from tests.wires import Scene, ZeroMQWire

SECONDS = 60.0


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


class Listening:
    """A feed on a wire, and others on that wire, in the same loop."""

    def __init__(self, wire: Any, folder: Path, ring: int) -> None:
        self.feed = BusFeed(folder, find=lambda: wire.address, ring=ring)
        self.scene = Scene(wire, folder)
        self.feed.start()
        wait_until(lambda: self.feed.link.is_live)

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.feed.loop).result(SECONDS)

    async def talk(self, count: int) -> Bus:
        bus = await self.scene.bus("talker", journaled=False)
        for index in range(count):
            await bus.publish(GenerationToken(query_id="q", index=index, text="x"), Trace("q"))
        return bus


@pytest.fixture
def listening(any_wire: Any, tmp_path: Path) -> Any:
    made = Listening(any_wire, tmp_path, ring=100)
    yield made
    made.run(made.scene.close())
    made.feed.close()


def test_each_message_is_taken_or_waits_or_is_counted_as_dropped(listening: Listening) -> None:
    feed, taken, done = listening.feed, list[Envelope](), threading.Event()

    def take() -> None:
        while not done.is_set():
            taken.extend(feed.take(7))
            time.sleep(0.001)

    thread = threading.Thread(target=take)
    thread.start()
    listening.run(listening.talk(3_000))
    wait_until(lambda: feed.heard >= 3_000)
    done.set()
    thread.join()
    assert feed.waiting <= 100, "the ring is bounded"
    left = feed.take(1_000)
    assert len(taken) + len(left) + feed.dropped == feed.heard
    assert feed.dropped > 0
    assert [each.seq for each in left if each.sender == "talker"][-1:] in ([3_000], []), "the latest are kept"


def test_a_question_that_is_asked_while_the_bus_is_away_is_asked_once(tmp_path: Path) -> None:
    folder = tmp_path / "bus"
    folder.mkdir()
    wire = ZeroMQWire(folder)
    listening = Listening(wire, tmp_path, ring=1000)
    feed, stored = listening.feed, []
    try:
        listening.run(listening.scene.journal())
        wire.down()
        wait_until(lambda: not feed.link.is_live)
        assert "does not answer" in feed.link.why and time.time() - feed.link.since < SECONDS
        feed.publish(QueryReceived(query_id="q1", query="Well?"), Trace("q1"), stored.append, envelope_id="e1")
        wire.up()
        wait_until(lambda: (feed.settle(), stored)[1])
        assert stored == [None] and feed.link.is_live
        assert listening.scene.ids().count("e1") == 1
    finally:
        listening.run(listening.scene.close())
        feed.close()
        wire.close()


def test_without_a_system_the_feed_says_so_and_waits(tmp_path: Path) -> None:
    feed = BusFeed(tmp_path, find=RunDirectory(tmp_path).running_bus)
    feed.start()
    wait_until(lambda: "no system runs" in feed.link.why)
    assert not feed.link.is_live
    feed.close()
