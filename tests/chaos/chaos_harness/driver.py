"""Kills and freezes processes at random, but the same ones in the same order for the same seed."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

import psutil

LONGEST_IN_A_ROW = 2  # the supervisor gives up who dies five times within seconds, and shall


class How(StrEnum):
    """What happens to a process."""

    KILL = "kill"
    FREEZE = "freeze"  # for ever: the supervisor ends it
    NAP = "nap"  # frozen for less than the supervisor notices


class Blow(NamedTuple):
    """One process was hit; `at` is seconds of the monotonic clock."""

    at: float
    victim: str
    how: How


def blows(seed: int, victims: Sequence[str]) -> Iterator[tuple[str, How, float]]:
    """Whom to hit, how, and for a nap how long as a part of the hang limit."""
    chance = random.Random(seed)
    row: list[str] = []
    while True:
        victim = chance.choice([name for name in victims if row != [name] * LONGEST_IN_A_ROW])
        row = [*row, victim][-LONGEST_IN_A_ROW:]
        yield victim, chance.choice(list(How)), chance.uniform(0.1, 0.7)


class Driver:
    """Hits one process every so many seconds; `struck` are the hits so far. `strikes(name)` is called before each."""

    def __init__(
        self,
        victims: Callable[[], Mapping[str, psutil.Process]],
        hang_seconds: float,
        strikes: Callable[[str], object] = lambda name: None,
    ) -> None:
        self._victims, self._hang_seconds, self._strikes = victims, hang_seconds, strikes
        self.struck: list[Blow] = []
        self._news = asyncio.Event()

    async def run(self, seed: int, every: float) -> None:
        """Run until cancelled; then no process is left frozen."""
        due = time.monotonic()
        for name, how, part in blows(seed, sorted(self._victims())):
            due += every
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            process = self._victims().get(name)  # it may be gone, as it is being started again
            if process is not None:
                await self._hit(process, name, how, part * self._hang_seconds)

    async def until(self, times: int) -> None:
        """Wait until it has hit so many times."""
        while len(self.struck) < times:
            self._news.clear()
            await self._news.wait()

    async def _hit(self, process: psutil.Process, name: str, how: How, seconds: float) -> None:
        self._strikes(name)
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL if how is How.KILL else signal.SIGSTOP)
            self.struck.append(Blow(time.monotonic(), name, how))
            self._news.set()
            if how is How.NAP:
                try:
                    await asyncio.sleep(seconds)
                finally:
                    process.send_signal(signal.SIGCONT)
