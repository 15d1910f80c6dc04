"""A process is struck at a named step of the work: by default one step of each process; `-m thorough` takes more, and
`scripts/bench.py chaos --cells` runs the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_harness.cells import Cell, Treatment, matrix, run_cell
from chaos_harness.disk_cells import DiskCell, DiskTrouble, run_disk_cell, system_on
from chaos_harness.judge import Fault
from chaos_harness.system import VICTIMS, ChaosSystem

LONG_HANG, NAP_SECONDS = 30.0, 1.0
pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

KILLED = [cell for cell in matrix() if cell.treatment is Treatment.KILL and not cell.is_of_an_observer]
ENDED = [Cell(name, Treatment.END) for name in ("journal.committed", "turn.step_stored", "tool.after_run")]
BESIDE_THE_PROXY = [Cell(name, Treatment.PROXY) for name in ("journal.confirmed", "turn.end_stored", "tool.recorded")]
THAWED = [
    Cell("journal.received", Treatment.THAW),
    Cell("turn.published", Treatment.THAW),
    Cell("tool.before_run", Treatment.REPLACE),
    Cell("turn.step_stored", Treatment.REPLACE),
]
SOME = [*{cell.victim: cell for cell in KILLED}.values(), BESIDE_THE_PROXY[1]]
SOME_AND_MORE = [
    pytest.param(cell, marks=[] if cell in SOME else [pytest.mark.thorough], id="-".join(cell))
    for cell in [*KILLED, *ENDED, *BESIDE_THE_PROXY]
]
IN_TROUBLE = [DiskCell(DiskTrouble.FULL, "journal"), DiskCell(DiskTrouble.READ_ONLY, "generator")]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosSystem]:
    """One that loses patience with frozen processes soon."""
    with ChaosSystem(tmp_path_factory.mktemp("chaos")) as system:
        assert set(system.victims()) == set(VICTIMS), "whom nobody finds nobody hits"
        yield system


def test_in_the_default_run_every_process_is_struck() -> None:
    assert {cell.victim for cell in SOME} == set(VICTIMS)


@pytest.mark.parametrize("cell", SOME_AND_MORE)
async def test_whoever_is_struck_at_a_step_nothing_is_lost_or_done_twice(system, cell) -> None:
    before = len(system.log)
    assert await run_cell(system, cell) == [], "\n".join(system.log[before:])


@pytest.mark.thorough
async def test_a_process_that_thaws_goes_on_where_it_was(tmp_path) -> None:
    with ChaosSystem(tmp_path, hang_seconds=LONG_HANG) as system:
        found = {cell: await run_cell(system, cell, freeze_seconds=NAP_SECONDS) for cell in THAWED}
    assert not any(found.values()), "\n".join([*map(str, found.items()), *system.log])


@pytest.mark.thorough  # tests/system/test_small_disk.py has the whole system on a small disk
async def test_whoever_is_killed_on_a_disk_in_trouble_nothing_is_lost_or_done_twice(small_disk, tmp_path) -> None:
    with system_on(small_disk, tmp_path, seconds=NAP_SECONDS) as system:
        found = {cell: await run_disk_cell(system, small_disk, cell, seconds=NAP_SECONDS) for cell in IN_TROUBLE}
    assert not any(found.values()), "\n".join([*map(str, found.items()), *system.log])


@pytest.mark.thorough  # that the judge finds losses is in test_judge.py
async def test_without_the_journal_s_protection_the_judge_finds_a_loss(tmp_path) -> None:
    with ChaosSystem(tmp_path, lossy=True) as system:
        found = await run_cell(system, Cell("generator.delivered", Treatment.KILL), patience=1.5)
    assert Fault.LOST in {violation.fault for violation in found}
