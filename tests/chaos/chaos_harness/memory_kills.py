"""One run: answers are published and searched for while the memory's process is killed again and again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from pathlib import Path

from chaos_harness.memory_evidence import gather
from chaos_harness.memory_judge import Search, Violation, judge
from chaos_harness.memory_watch import MEMORY, MemoryWatch
from chaos_harness.remembered import USERS, Remembered, remembered
from local.bus.bus import Bus
from local.bus.envelope import Trace, new_id
from local.bus.security import Declaration
from local.cli.temporary_system import TemporarySystem, write_settings
from local.core.data_dir import RunDirectory
from local.core.errors import RequestTimeout
from local.memory.messages import MemoryRequest, MemoryResult
from local.run.participant import open_bus
from local.runtime.supervisor import EARLY_SECONDS

PUBLISHERS, SEARCHERS = 4, 2
SEARCH_SECONDS = 3.0
PAUSE_SECONDS = 0.02  # between two searches of one searcher: they are to meet the ingestion, not to hold it up
MARGIN_SECONDS = 0.5  # the supervisor's clock of a process begins a little before ours
PATIENCE = 60.0
LAST_SEARCHES = 60
STALE_BEATS = 2  # which may tell how it was before the last answer came


class MemoryGone(Exception):
    """The memory was not started again, or not as far as it should be."""


class Moment(StrEnum):
    """When the process is killed."""

    STARTING = "while it starts"
    EARLY = "at work soon after its start"
    LATE = "at work, when it has long lived and searches by meaning, too"  # the supervisor counts anew after that


# The supervisor gives up a process that dies early five times in a row: here it never does so more than three times.
MOMENTS = (Moment.EARLY, Moment.STARTING, Moment.EARLY, Moment.LATE)
AT_RANDOM = {Moment.STARTING: 0.6, Moment.EARLY: 0.03, Moment.LATE: 1.0}  # a kill lies within so many seconds


@dataclass(frozen=True, slots=True)
class Result:
    """What a run was and what was found. `settled_seconds` passed from the last kill until nothing was pending."""

    kills: Sequence[Moment]
    restarts: int
    searches: Sequence[Search]
    settled_seconds: float
    violations: Sequence[Violation]
    log: Sequence[str]


async def memory_kills(folder: Path, *, kills: int, answers: int, seed: int = 1) -> Result:
    """Publish so many answers, and kill the memory so many times while it stores them.

    Raises `MemoryGone`, in a group, if it does not come back.
    """
    published = [remembered(number) for number in range(answers)]
    async with _system(folder) as (system, bus, watch):
        run = _Run(bus, watch, published, random.Random(seed))
        moments = list(islice(cycle(MOMENTS), kills))
        async with asyncio.TaskGroup() as tasks:
            searching = [tasks.create_task(run.search_on()) for _ in range(SEARCHERS)]
            for number, moment in enumerate(moments):
                begin, end = (answers * part // kills for part in (number, number + 1))
                await run.wait_for(moment)
                publishing = tasks.create_task(run.publish(published[begin:end]))
                await run.kill(moment, run.chance.randint(begin, end - 1))
                await publishing
            killed_at = time.monotonic()
            await watch.until(lambda: len(watch.told) == answers, PATIENCE)
            told = watch.beats + STALE_BEATS
            await watch.until(lambda: watch.beats > told and watch.is_settled, PATIENCE + answers / 20)
            settled_seconds = time.monotonic() - killed_at
            for task in searching:
                task.cancel()
        for wanted in run.chance.sample(published, min(LAST_SEARCHES, answers)):
            await run.search(wanted, wanted.user_id)
        restarts = watch.restarts
    violations = judge(await asyncio.to_thread(gather, system.data_dir, published, run.searches))
    return Result(moments, restarts, run.searches, settled_seconds, violations, system.log)


class _Run:
    def __init__(self, bus: Bus, watch: MemoryWatch, published: Sequence[Remembered], chance: random.Random) -> None:
        self._bus, self._watch, self._published, self.chance = bus, watch, published, chance
        self._sent: list[Remembered] = []
        self.searches: list[Search] = []

    async def publish(self, answers: Sequence[Remembered]) -> None:
        """Publish these, some at once; each is on record when this returns."""
        waiting = iter(answers)

        async def work() -> None:
            for each in waiting:
                await self._bus.publish(each.message, each.trace)
                self._sent.append(each)

        async with asyncio.TaskGroup() as publishers:
            for _ in range(PUBLISHERS):
                publishers.create_task(work())

    async def wait_for(self, moment: Moment) -> None:
        """Wait until the process is that far."""
        watch = self._watch
        await self._require(lambda: watch.pid is not None)
        if moment is not Moment.STARTING:
            await self._require(lambda: watch.ready_at is not None)
        if moment is Moment.LATE:
            await asyncio.sleep(EARLY_SECONDS + MARGIN_SECONDS - (time.monotonic() - (watch.ready_at or 0.0)))
            await self._require(lambda: watch.is_indexed)

    async def kill(self, moment: Moment, stored: int) -> None:
        """Kill the process, unless it is only starting when it has told of so many exchanges.

        Returns when another one has been started.
        """
        watch = self._watch
        if moment is not Moment.STARTING:
            await watch.until(lambda: len(watch.told) >= stored, PATIENCE)
        await asyncio.sleep(self.chance.uniform(0, AT_RANDOM[moment]))
        before = watch.restarts
        assert watch.pid is not None, "nobody else ends it"
        os.kill(watch.pid, signal.SIGKILL)
        await self._require(lambda: watch.restarts > before)

    async def search_on(self) -> None:
        """Search without end for what was published, for whom it belongs to and, now and then, for somebody else."""
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            if self._sent:
                wanted = self.chance.choice(self._sent)
                await self.search(wanted, self.chance.choice((wanted.user_id, *USERS)))

    async def search(self, wanted: Remembered, user_id: str) -> None:
        """Search once, and keep what came of it."""
        was_told, result = wanted.query_id in self._watch.told, None
        request = MemoryRequest(verb="search", query=wanted.question)
        with suppress(RequestTimeout):
            trace = Trace(new_id(), user_id=user_id)
            result = await self._bus.request(request, MemoryResult, SEARCH_SECONDS, trace)
        self.searches.append(Search(wanted, user_id, was_told, result))

    async def _require(self, holds: Callable[[], bool]) -> None:
        if not await self._watch.until(holds, PATIENCE):
            raise MemoryGone(f"{self._watch.child}, {self._watch.status}")


@asynccontextmanager
async def _system(folder: Path) -> AsyncIterator[tuple[TemporarySystem, Bus, MemoryWatch]]:
    """A system with a memory, and a bus to it; ended when left."""
    settings = {"system": {"backend": "stand_in", "participants": ["arbiter", MEMORY]}}
    config = write_settings(folder / "config", settings)
    system = TemporarySystem(folder / "data", config_dir=config, flags=["--log-level", "warning"])
    await asyncio.to_thread(system.__enter__)
    try:
        address = RunDirectory(system.data_dir).running_bus()
        says = Declaration(frozenset({""}))  # in place of everybody that is not there
        async with open_bus("chaos", address, system.data_dir, journaled=True, declaration=says) as bus:
            watch = MemoryWatch(bus)
            await bus.ready()
            yield system, bus, watch
    finally:
        await asyncio.to_thread(system.__exit__, None, None, None)
