"""A temporary folder that is in use for as long as the process lives that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


class HeldFolder:
    """Made if need be, private to the user, and held until `close` or the end of the process: the lock is on the
    folder itself. Raises `OSError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        while True:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # where folders cannot be locked nobody clears them either
                fcntl.flock(self._handle, fcntl.LOCK_SH)
            if _has_its_name(self._handle, path):
                return
            self.close()  # it was cleared at this moment

    def close(self) -> None:
        """Hold it no longer."""
        os.close(self._handle)


def clear_unheld(path: Path, names: Sequence[str]) -> bool:
    """Remove a folder of this user that nobody holds, with the files in it that match `names`.

    One with anything else in it stays; so does one that is not ours or cannot be locked. Returns whether it is gone.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        if os.fstat(handle).st_uid != os.getuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in (file for name in names for file in path.glob(name)):
            file.unlink()
        path.rmdir()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _has_its_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
