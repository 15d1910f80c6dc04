"""What a system does once it runs: it tells others where it is, its user that it is ready, and clears leftovers."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

from local.apps.run_directory import Facts, RunDirectory
from local.runtime.template import clear_folders

log = logging.getLogger(__name__)

ROOM_SECONDS = 1.0  # between two looks whether there is room


async def introduce(directory: RunDirectory, facts: Facts, greet: Callable[[], object]) -> None:
    """Write down where the system is, as soon as there is room for that, then `greet()`."""
    if not directory.tell(facts):
        log.warning("nobody else can find this system until there is room in %s", directory.path)
    while not directory.tell(facts):  # noqa: ASYNC110 - nobody tells when there is room
        await asyncio.sleep(ROOM_SECONDS)
    greet()
    await asyncio.to_thread(_clear_temporary, directory)


def _clear_temporary(directory: RunDirectory) -> None:
    """Remove what systems that were killed have left in the folder for temporary files."""
    count = directory.clear_others() + clear_folders(Path(tempfile.gettempdir()))
    log.debug("%d temporary folders of processes that were killed are removed", count)
