"""The long run and the full matrix, as figures with their limits."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from chaos_harness.agents_judge import Fault as AgentsFault
from chaos_harness.agents_run import agents_chaos
from chaos_harness.cell_run import Machines, cell_chaos
from chaos_harness.cells import Cell, NotReached, Treatment, leaves_frozen_alone, matrix, run_cell
from chaos_harness.disk_cells import DISK_SIZE, TROUBLE_SECONDS, DiskTrouble, disk_matrix, run_disk_cell, system_on
from chaos_harness.driver import How
from chaos_harness.figures import longest_gaps, percentiles
from chaos_harness.judge import Fault, Violation
from chaos_harness.load import Users
from chaos_harness.observers_judge import Fault as ObserversFault
from chaos_harness.observers_run import observed_chaos
from chaos_harness.run import Result, random_chaos
from chaos_harness.small_disk import MayNotMount, SmallDisk
from chaos_harness.system import HANG_SECONDS, ChaosSystem

log = logging.getLogger(__name__)

THINK_SECONDS, MODEL_SECONDS = 5.0, 0.1
QUERIES_FOR_A_BLOW = 5
LONG_HANG_SECONDS = 30.0  # the processes of these cells thaw before that
MOST_SECONDS = 2.0
LIMITS = {How.KILL: MOST_SECONDS, How.FREEZE: HANG_SECONDS + 1, How.NAP: MOST_SECONDS}  # of a service gap


class Measured(NamedTuple):
    """One figure; without a limit it is for information."""

    name: str
    value: float
    unit: str
    limit: float | None = None


async def long_run(*, seed: int, sessions: int, queries: int, every: float) -> list[Measured]:
    """Random chaos until so many queries have ended."""
    each = max(1, queries // sessions)
    users = Users([f"s{number}" for number in range(sessions)], seed, THINK_SECONDS)
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        ChaosSystem(Path(folder), model_seconds=MODEL_SECONDS) as system,
    ):
        result = await random_chaos(system, users, every=every, goes_on=lambda asked: asked < each)
    _tell("long run", result.violations)
    return _figures(result)


async def observers_run(*, seed: int, sessions: int, queries: int, every: float) -> list[Measured]:
    """Random chaos with observers, until so many queries have ended and a fifth as many blows were dealt."""
    each = max(1, queries // sessions)
    users = Users([f"s{number}" for number in range(sessions)], seed, THINK_SECONDS)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, ChaosSystem(Path(folder), observed=True) as system:
        result = await observed_chaos(
            system, users, every=every, faults=queries // QUERIES_FOR_A_BLOW, goes_on=lambda asked: asked < each
        )
    _tell("observers", result.violations)
    found = Counter(violation.fault for violation in result.violations)
    struck = Counter((blow.victim, blow.how) for blow in result.struck)
    return [
        Measured("chaos: queries", len(result.asked), ""),
        Measured("chaos: ratings", result.ratings, ""),
        *(Measured(f"chaos: {fault}", found[fault], "", 0) for fault in (*Fault, *ObserversFault)),
        Measured("chaos: from the last blow until all is done", result.settled_seconds, "s"),
        Measured("chaos: blows", len(result.struck), ""),
        *(Measured(f"chaos:   {how} {victim}", times, "") for (victim, how), times in sorted(struck.items())),
    ]


async def cell_run(*, seed: int, sessions: int, queries: int, every: float, takeovers: int) -> list[Measured]:
    """A cell on three NATS servers loses so many machines, while users ask."""
    users = Users([f"s{number}" for number in range(sessions)], seed, THINK_SECONDS)
    with tempfile.TemporaryDirectory(prefix="cell-") as folder:
        machines = Machines(Path(folder))
        async with machines.running():
            result = await cell_chaos(machines, users, every=every, takeovers=takeovers, queries=queries)
    _tell("cell", result.violations)
    found = Counter(violation.fault for violation in result.violations)
    p50, p99 = percentiles(result.asked)
    longest = max((asked.seconds or 0.0 for asked in result.asked), default=0.0)
    return [
        Measured("cell: queries", len(result.asked), ""),
        Measured("cell: effects", result.effects, ""),
        *(Measured(f"cell: {fault}", found[fault], "", 0) for fault in Fault),
        Measured("cell: machines lost", len(result.waits), ""),
        Measured("cell: from a loss until the next machine serves, longest", max(result.waits, default=0.0), "s"),
        Measured("cell: latency, p50", p50, "s"),
        Measured("cell: latency, p99", p99, "s"),
        Measured("cell: latency, longest", longest, "s"),
    ]


async def agents_run(*, seed: int, sessions: int, seconds: float, every: float) -> list[Measured]:
    """Random chaos while so many users have tasks done by agents, for so long."""
    users = Users([f"s{number}" for number in range(sessions)], seed)
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        ChaosSystem(Path(folder), model_seconds=MODEL_SECONDS, agents=True) as system,
    ):
        end = time.monotonic() + seconds
        result = await agents_chaos(system, users, every=every, goes_on=lambda: time.monotonic() < end)
    _tell("agents", result.violations)
    found = Counter(violation.fault for violation in result.violations)
    struck = Counter((blow.victim, blow.how) for blow in result.struck)
    p50, p99 = percentiles(result.asked)
    return [
        Measured("chaos: asking, with somebody hit meanwhile", result.seconds, "s"),
        Measured("chaos: queries", len(result.asked), ""),
        Measured("chaos: tasks of agents", result.tasks, ""),
        *(Measured(f"chaos: {fault}", found[fault], "", 0) for fault in (*Fault, *AgentsFault)),
        Measured("chaos: latency, p50", p50, "s"),
        Measured("chaos: latency, p99", p99, "s"),
        Measured("chaos: blows", len(result.struck), ""),
        *(Measured(f"chaos:   {how} {victim}", times, "") for (victim, how), times in sorted(struck.items())),
    ]


async def full_matrix() -> list[Measured]:
    """Every failpoint under every treatment, and every process under every trouble of the disk: how many cells went
    wrong."""
    return [*[await _under(treatment) for treatment in Treatment], *await _on_a_small_disk()]


async def _on_a_small_disk() -> list[Measured]:
    """Nothing where one may not mount."""
    try:
        broken = Counter([trouble for observed in (False, True) for trouble in await _broken_on_a_small_disk(observed)])
    except MayNotMount as error:
        log.warning("cells of the disk left out: %s", error)
        return []
    what = "chaos: killed while the disk is {} for {:g} s, broken"
    return [Measured(what.format(trouble, TROUBLE_SECONDS), broken[trouble], "cells", 0) for trouble in DiskTrouble]


async def _broken_on_a_small_disk(observed: bool) -> list[DiskTrouble]:
    """The trouble of each cell that went wrong. Raises `MayNotMount`."""
    wrong = []
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as name,
        SmallDisk(Path(name) / "disk", DISK_SIZE) as disk,
        system_on(disk, Path(name), observed=observed) as system,
    ):
        for cell in disk_matrix():
            if cell.is_of_an_observer is observed:
                violations = await run_disk_cell(system, disk, cell)
                _tell("-".join(cell), violations)
                wrong += [cell.trouble] * bool(violations)
    return wrong


async def _under(treatment: Treatment) -> Measured:
    cells = [cell for cell in matrix() if cell.treatment is treatment]
    hang_seconds = LONG_HANG_SECONDS if leaves_frozen_alone(treatment) else HANG_SECONDS
    wrong = 0
    for observed in (False, True):
        with (
            tempfile.TemporaryDirectory(prefix="chaos-") as folder,
            ChaosSystem(Path(folder), hang_seconds=hang_seconds, observed=observed) as system,
        ):
            concerned = [cell for cell in cells if cell.is_of_an_observer is observed]
            wrong += sum([not await _holds(system, cell) for cell in concerned])
    return Measured(f"chaos: {treatment}, at {len(cells)} failpoints, broken", wrong, "cells", 0)


async def _holds(system: ChaosSystem, cell: Cell) -> bool:
    try:
        violations = await run_cell(system, cell)
    except NotReached as error:
        log.warning("%s", error)
        return False
    _tell("-".join(cell), violations)
    return not violations


def _tell(where: str, violations: Iterable[Violation]) -> None:
    for fault, whose, detail in violations:
        log.warning("%s: %s: %s %s", where, fault, whose, detail)


def _figures(result: Result) -> list[Measured]:
    found = Counter(violation.fault for violation in result.violations)
    p50, p99 = percentiles(result.asked)
    gaps = longest_gaps(result.asked, result.struck)
    struck = Counter((blow.how, blow.victim) for blow in result.struck)
    return [
        Measured("chaos: queries", len(result.asked), ""),
        *(Measured(f"chaos: {fault}", found[fault], "", 0) for fault in Fault),
        Measured("chaos: latency, p50", p50, "s"),
        Measured("chaos: latency, p99", p99, "s", MOST_SECONDS),
        *(_gap(how, victim, times, gaps[how, victim]) for (how, victim), times in sorted(struck.items())),
    ]


def _gap(how: How, victim: str, times: int, seconds: float) -> Measured:
    return Measured(f"chaos: {how} {victim}, {times} times, longest gap", seconds, "s", LIMITS[how])
