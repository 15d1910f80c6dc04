"""One process is killed while the disk of the whole system is in trouble; users ask before, meanwhile and after."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from chaos_harness.cells import violations_under
from chaos_harness.judge import Violation
from chaos_harness.small_disk import SmallDisk
from chaos_harness.system import OBSERVERS, VICTIMS, ChaosSystem

TROUBLE_SECONDS = 10.0
DISK_SIZE = 64  # MiB: what users ask meanwhile does not fill it
PATIENCE = 90.0  # who was given up is tried again after up to 30 s
ROOM_AT_THE_START = 256 * 1024  # what everybody may say has been written down by an earlier start


class DiskTrouble(StrEnum):
    """What is wrong with the disk."""

    FULL = "full"
    READ_ONLY = "read-only"


class DiskCell(NamedTuple):
    """One of the matrix."""

    trouble: DiskTrouble
    victim: str

    @property
    def is_of_an_observer(self) -> bool:
        """Whether it is for a system that has observers."""
        return self.victim in OBSERVERS


def disk_matrix() -> list[DiskCell]:
    """The death of each process under each trouble."""
    return [DiskCell(trouble, victim) for trouble in DiskTrouble for victim in (*VICTIMS, *OBSERVERS)]


@contextmanager
def system_on(
    disk: SmallDisk, folder: Path, *, seconds: float = TROUBLE_SECONDS, observed: bool = False
) -> Iterator[ChaosSystem]:
    """A system whose data lie on the disk, which is full for so many seconds from the start on. Raises
    `SystemDidNotStart`."""
    data = disk.folder / "data"
    data.mkdir(mode=0o700)
    (data / "api_token").write_text("local2-of-an-earlier-start\n")
    disk.fill(room=ROOM_AT_THE_START)
    (folder / "data").symlink_to(data)
    making_room = threading.Timer(seconds, disk.free)
    making_room.start()
    try:
        with ChaosSystem(folder, observed=observed) as system:
            yield system
    finally:
        making_room.join()


async def run_disk_cell(
    system: ChaosSystem, disk: SmallDisk, cell: DiskCell, *, seconds: float = TROUBLE_SECONDS
) -> list[Violation]:
    """Violations of one cell; the trouble ends after so many seconds."""
    treatment = _in_trouble(system, disk, cell, seconds)
    return await violations_under(system, cell.victim, treatment, patience=PATIENCE) or []


@asynccontextmanager
async def _in_trouble(system: ChaosSystem, disk: SmallDisk, cell: DiskCell, seconds: float) -> AsyncIterator[bool]:
    with disk.full() if cell.trouble is DiskTrouble.FULL else disk.read_only():
        system.victims()[cell.victim].kill()
        await asyncio.sleep(seconds)
    yield True
