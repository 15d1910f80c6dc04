"""A folder whose files one process at a time changes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Waits for whoever has it, and holds it meanwhile: the lock is on the folder itself. Raises `OSError`."""
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
