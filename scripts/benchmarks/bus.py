"""The bus: typed 1 kB messages from publish to handler, and round trips, each end and the proxy in its own process."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks import talk_ours, talk_plain, talk_raw
from benchmarks.figure import Figure, alternate
from benchmarks.peer import Peer
from benchmarks.talk import forward
from local.core.bus_address import BusAddress

ROUNDS = 7
ASKS = 300


class Pair:
    """A talker and a listener of one way of doing it."""

    def __init__(self, way: ModuleType, address: BusAddress) -> None:
        self.listener, self.talker = Peer(way.listen, address), Peer(way.talk, address)

    async def rate(self) -> float:
        """Messages a second that reach the handler in one burst."""
        self.talker.tell(None)
        rate: float = await self.listener.hear()
        return rate

    async def round_trips(self) -> list[float]:
        """Seconds of each of some round trips."""
        self.talker.tell(ASKS)
        seconds: list[float] = await self.talker.hear()
        return seconds


async def run() -> list[Figure]:
    """All pairs share one proxy and take turns."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        address = BusAddress(f"ipc://{folder / 'pub'}", f"ipc://{folder / 'sub'}")
        await stack.enter_async_context(Peer(forward, address))
        pairs = [Pair(way, address) for way in (talk_ours, talk_plain, talk_raw)]
        for pair in pairs:
            await stack.enter_async_context(pair.listener)
            await stack.enter_async_context(pair.talker)
        rates = [median(each) for each in await alternate(ROUNDS, *(pair.rate for pair in pairs))]
        trips = await alternate(ROUNDS, *(pair.round_trips for pair in pairs))
    ours, plain, raw = (median(seconds for round_ in each for seconds in round_) * 1e6 for each in trips)
    return [
        Figure("bus: typed 1 kB messages", rates[0], "msg/s", rates[1], ratio_limit=1.9, at_least=True),
        Figure("bus: raw frames alone", rates[2], "msg/s", rates[1]),
        Figure("bus: round trip p50", ours, "µs", plain, ratio_limit=0.85),
        Figure("bus: raw round trip p50", raw, "µs", plain),
    ]
