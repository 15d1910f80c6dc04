"""One failpoint, one way to be hit there: the process that gets there is struck once while users ask."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from typing import NamedTuple

import psutil

from chaos_harness.evidence import gather
from chaos_harness.history import Asked
from chaos_harness.judge import Violation, judge
from chaos_harness.load import Users, ask_as_many_users, client_of
from chaos_harness.observers_evidence import violations_at_the_end
from chaos_harness.ratings import Raters
from chaos_harness.system import OBSERVERS, STAMP, WITNESS, ChaosSystem
from local.core.failpoints import NAMES

USERS = 3
ROUND = 3  # questions until a user has asked one of each kind
THINK_SECONDS = 0.3  # where there are observers: they have the model while no user needs it
SECONDS_FOR_A_QUERY = 1.0  # at most, until every observer has dealt with it
LOOK_SECONDS = 0.005
REACH_SECONDS = 20.0
PATIENCE = 40.0
PROXY = "proxy"
PROCESSES = {
    "api": "api", "gatekeeper": "gatekeeper", "generator": "generator", "journal": "journal", "observer": "witness",
    "tool": "stamp", "turn": "generator", **{name: name for name in OBSERVERS},
}  # fmt: skip
# A second process of the memory is refused for as long as the first one lives: its index bears no two writers.
REPLACEMENTS = {"generator": "generator", "stamp": STAMP, "witness": WITNESS} | {
    name: name for name in OBSERVERS if name != "memory"
}


class Treatment(StrEnum):
    """What happens at the failpoint."""

    KILL = "kill -9"
    THAW = "freeze, then continue"  # for a system that leaves a frozen process alone for longer than that
    END = "freeze, then kill"  # by the supervisor, once its patience has ended
    REPLACE = "freeze, replace by hand, then continue"  # for such a system, too
    PROXY = "proxy killed meanwhile"  # it forwards in C and has no steps of its own


class Cell(NamedTuple):
    """One of the matrix."""

    failpoint: str
    treatment: Treatment

    @property
    def process(self) -> str:
        """Whose failpoint it is."""
        return PROCESSES[self.failpoint.partition(".")[0]]

    @property
    def is_of_an_observer(self) -> bool:
        """Whether it is for a system that has observers."""
        return self.process in OBSERVERS

    @property
    def victim(self) -> str:
        """Who dies."""
        return PROXY if self.treatment is Treatment.PROXY else self.process


class NotReached(Exception):
    """No process reached the failpoint."""


def failpoints() -> set[str]:
    """Those of the processes that take part: those of files, jobs and agents are in their tests."""
    return {name for name in NAMES if name.partition(".")[0] in PROCESSES}


def matrix() -> list[Cell]:
    """Every failpoint under every treatment; those of one process lie apart, since each needs it to have lived."""
    return [
        cell
        for treatment in Treatment
        for cell in _spread([Cell(name, treatment) for name in sorted(failpoints())])
        if treatment is not Treatment.REPLACE or cell.process in REPLACEMENTS
    ]


def _spread(cells: list[Cell]) -> list[Cell]:
    """The cells of each process at equal distances."""
    by_process: defaultdict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_process[cell.process].append(cell)
    places = {cell: (n + 0.5) / len(group) for group in by_process.values() for n, cell in enumerate(group)}
    return sorted(cells, key=lambda cell: places[cell])


def leaves_frozen_alone(treatment: Treatment) -> bool:
    """Whether it is for a system with a hang limit that is longer than the freeze."""
    return treatment in (Treatment.THAW, Treatment.REPLACE)


async def run_cell(
    system: ChaosSystem, cell: Cell, *, freeze_seconds: float = 10.0, patience: float = PATIENCE
) -> list[Violation]:
    """Violations of one cell; its users' sessions are its own. Raises `NotReached`."""
    treatment = _treated(system, cell, freeze_seconds)
    found = await violations_under(system, cell.victim, treatment, patience=patience)
    if found is None:
        raise NotReached(f"nobody reached {cell.failpoint} within {REACH_SECONDS:g} s")
    return found


async def violations_under(
    system: ChaosSystem, victim: str, treatment: AbstractAsyncContextManager[bool], *, patience: float
) -> list[Violation] | None:
    """Violations while users ask and one process is treated; None if the treatment says that it came to nothing. It is
    over when it has been entered; each user then asks one question of each kind."""
    asked: list[Asked] = []
    since: list[Asked] = []  # ended after the process was treated
    treated = asyncio.Event()

    def told(each: Asked) -> None:
        asked.append(each)
        if system.observed:
            raters.hear(each)
        if treated.is_set():
            since.append(each)

    await _comes_true(lambda: system.bears_a_strike(victim))
    system.count_strike(victim)
    begun = time.monotonic_ns()
    think_seconds = THINK_SECONDS if system.observed else 0.0
    users = Users([f"c{begun}.{number}" for number in range(USERS)], think_seconds=think_seconds)
    async with client_of(system.api_url, patience) as client:
        async with asyncio.TaskGroup() as tasks, Raters(client) as raters:
            asking = tasks.create_task(ask_as_many_users(client, users, lambda _: len(since) < USERS * ROUND, told))
            async with treatment as was_treated:
                treated.set()
                await asking
        if not was_treated:
            return None
        found = judge(await gather(system, client, asked))
        if system.observed:
            patience += SECONDS_FOR_A_QUERY * len(asked)  # the second respondent, and the judge, wait for their turn
            found += await violations_at_the_end(system.data_dir, client, asked, raters, patience)
        return found


@asynccontextmanager
async def _treated(system: ChaosSystem, cell: Cell, freeze_seconds: float) -> AsyncIterator[bool]:
    """Entered when one process has been struck and, where it is to be, continued; gives False if none came."""
    token = system.arm(cell.failpoint, "kill" if cell.treatment is Treatment.KILL else "freeze")
    reached = await _comes_true(lambda: not token.exists())
    system.disarm(token)
    if not reached or cell.treatment in (Treatment.KILL, Treatment.END):
        yield reached
        return
    await _comes_true(lambda: bool(_frozen(system)))
    frozen = _frozen(system)
    async with AsyncExitStack() as stack:
        match cell.treatment:
            case Treatment.THAW:
                await asyncio.sleep(freeze_seconds)
            case Treatment.REPLACE:
                frozen_ids = [process.pid for process in frozen]
                await stack.enter_async_context(system.replacement(REPLACEMENTS[cell.process], frozen_ids))
            case Treatment.PROXY:
                system.victims()[PROXY].kill()
        for process in frozen:
            with suppress(psutil.NoSuchProcess):  # where all is slow, the supervisor has ended it
                process.send_signal(signal.SIGCONT)
        yield True


def _frozen(system: ChaosSystem) -> list[psutil.Process]:
    return [process for process in system.victims().values() if _is_frozen(process)]


def _is_frozen(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_STOPPED
    return False


async def _comes_true(holds: Callable[[], bool]) -> bool:
    """Look again and again: what another process does to itself tells nobody."""
    end = time.monotonic() + REACH_SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
