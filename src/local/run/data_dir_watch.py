"""The watch that notices when the data directory is removed or replaced while the system runs on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from local.core.data_dir import DataDirLock
from local.core.errors import AlreadyRunning, LocalError
from local.core.files import until_next_tick

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class DataDirWatch:
    """A watch on the data directory of a running system.

    It reports with `report_problem(problem)`, which `/health` shows; an empty text means that the problem is solved.
    When the directory was replaced, `furnish()` writes the required files into it, again at each check while that fails
    with a `LocalError`, and `renewed()` is called. `stop()` is called when another system runs on it.
    """

    def __init__(
        self,
        lock: DataDirLock,
        report_problem: Callable[[str], object],
        furnish: Callable[[], object],
        renewed: Callable[[], Awaitable[object]],
        stop: Callable[[], object],
    ) -> None:
        self._lock, self._report_problem = lock, report_problem
        self._furnish, self._renewed, self._stop = furnish, renewed, stop
        self._problem = ""
        self._lacks_something = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(until_next_tick(asyncio.get_running_loop().time(), LOOK_SECONDS))
            if self._lock.is_lost():
                await self._take_again()
            elif self._lacks_something:
                self._fill()
            elif self._problem:
                self._report("")
                log.warning("the data directory is in order again")

    async def _take_again(self) -> None:
        try:
            self._lock.take_again()
        except AlreadyRunning as error:
            self._report(f"the data directory was removed while the system runs; the system ends: {error}")
            self._stop()
        except LocalError as error:
            self._report(str(error))
        else:
            log.warning(
                "the data directory or its lock was replaced while the system runs; the system continues with it"
            )
            self._report("")
            self._fill()
            await self._renewed()

    def _fill(self) -> None:
        try:
            self._furnish()
            self._lacks_something = False
        except LocalError as error:
            self._lacks_something = True
            self._report(str(error))

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.error("%s", problem)
            self._report_problem(problem)
