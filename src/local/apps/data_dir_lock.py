"""One system for each data directory, also when somebody takes the directory or its lock away while it runs."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from local.errors import AlreadyRunning, ConfigError, LocalError, StoreGone


class DataDirLock:
    """Use as a context manager. The lock lies beside the data: what is in the temporary folder may be cleaned away, or
    be elsewhere for others."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir, self._path = data_dir, data_dir / "lock"

    def __enter__(self) -> Self:
        """Raises `AlreadyRunning`, `ConfigError`."""
        self._file = self._taken()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def is_lost(self) -> bool:
        """Whether another system would not find the lock that this one holds."""
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        except OSError:
            return True

    def take_again(self) -> None:
        """Take the lock in the directory that is there now. Raises `StoreGone`, `AlreadyRunning`, `ConfigError`."""
        if not self._data_dir.is_dir():
            raise StoreGone(self._data_dir)
        file = self._taken()
        self._file.close()
        self._file = file

    def _taken(self) -> FileIO:
        try:
            file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise unusable(self._data_dir, error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                file.seek(0)
                raise AlreadyRunning(self._who_runs(file.read().decode(errors="replace"))) from None
        with suppress(OSError):  # on a full disk the lock holds all the same, and does not say whose it is
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        return file

    def _who_runs(self, pid: str) -> str:
        who = f"process {pid}" if pid else "another process that is still starting"
        return f"a system runs on {self._data_dir} already ({who}); stop it, or give another --data-dir"


def holder(data_dir: Path) -> int | None:
    """The process whose lock lies in a data directory, if it lives; nobody is kept from the lock by this look."""
    try:
        pid = int((data_dir / "lock").read_bytes())
        os.kill(pid, 0)
    except (OSError, ValueError, OverflowError):
        return None
    return pid if pid > 0 else None


def unusable(data_dir: Path, error: OSError) -> LocalError:
    """What to tell somebody whose data directory cannot be used."""
    what = f"{data_dir} cannot hold the data: {error.strerror}"
    return ConfigError(f"{what}; give another folder with --data-dir or LOCAL2_DATA_DIR")
