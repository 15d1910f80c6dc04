"""Files and processes: growing pauses, private files, locked folders, shared ticks, and processes in our sandboxes."""

from __future__ import annotations

import fcntl
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Pauses between attempts that grow.


class Backoff:
    """Pauses that double, from `first` to at most `longest` seconds."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest, self._next = first, longest, first

    def next(self) -> float:
        """The pause before the next attempt."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause

    def reset(self) -> None:
        """Start again with the first pause."""
        self._next = self._first


CONTAINED_ID = "64729"  # a number that no other program's sandboxes use; outside it maps to LoCAL2's user
MOST_OF_OWNERS_TEXT = 32_000  # bytes of LOCAL2.md, SOUL.md and the like, which are in every prompt
_PROC = Path("/proc")


def contained_processes() -> set[int]:
    """Return the ids of the processes that share our network. For a sandbox that exists during the call, at least its
    main process is included; all processes that it starts belong to the sandbox.
    """
    own_users, own_network = _namespace("self", "user"), _namespace("self", "net")
    found = set()
    for name in _processes():
        if _namespace(name, "user") != own_users and _is_ours(name) and _namespace(name, "net") in (own_network, ""):
            found.add(int(name))
    return found


def is_held_by(inode: int, *, but: set[int]) -> bool:
    """Whether a process that we may inspect, other than these, holds the socket of that number."""
    socket = f"socket:[{inode}]"
    for name in _processes():
        if int(name) not in but:
            with suppress(OSError), os.scandir(_PROC / name / "fd") as descriptors:
                if any(_link(descriptor.path) == socket for descriptor in descriptors):
                    return True
    return False


def _processes() -> list[str]:
    try:
        return [name for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - half the time
    except OSError:
        return []  # no Linux


def _is_ours(name: str) -> bool:
    try:
        inside, _, count = (_PROC / name / "uid_map").read_bytes().split()
    except (OSError, ValueError):
        return False
    return (inside.decode(), count) == (CONTAINED_ID, b"1")


def _namespace(name: str, kind: str) -> str:
    """Return the namespace's id; empty if the system does not report it."""
    return _link(f"{_PROC}/{name}/ns/{kind}")


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - a third of the time
    except OSError:
        return ""


# A folder whose files are changed by one process at a time.


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Hold the lock on a folder, after waiting for its present holder. Raises `OSError`."""
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


# Small files for the eyes of this Unix user alone.

OWNER = "owner"  # the user_id of the system's owner
OWNER_ONLY = 0o600


def write_private(path: Path, text: str, mode: int = OWNER_ONLY) -> None:
    """Replace a file durably; the new file has that mode from its first byte on. Simultaneous
    calls for one path wait for each other, so that each writes its text whole. Raises `OSError`.
    """
    part = path.with_name(f"{path.name}.part")
    with _opened_alone(part, mode) as descriptor, os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
        part.replace(path)


@contextmanager
def _opened_alone(part: Path, mode: int) -> Iterator[int]:
    """Open an empty file with that mode. If another writer has it open, wait until that one has renamed it."""
    while True:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(part, descriptor):
                os.fchmod(descriptor, mode)
                os.ftruncate(descriptor, 0)
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether that is the file at a path, and not one that was renamed meanwhile."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


# Ticks common to all processes of a machine. Periodic work is done at them, so that a process wakes once for all of it,
# when the messages of others have arrived.

_EARLY = 1e-3  # of a period, by which a timer that was set for a tick may go off before it


def tick_number(now: float, seconds: float) -> int:
    """Return how many whole periods of so many seconds the clock has counted. `now` is of `time.monotonic`, also the
    clock of event loops, which all processes share.
    """
    return math.floor(now / seconds + _EARLY)


def until_next_tick(now: float, seconds: float) -> float:
    """Return the seconds until the end of this period."""
    return (tick_number(now, seconds) + 1) * seconds - now
