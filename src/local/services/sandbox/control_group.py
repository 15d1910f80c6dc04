"""The kernel's own count of what one command and all that it starts take, where we may ask for one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from local.services.sandbox.sandbox_limits import SandboxLimits

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
PREFIX = "local2-"
SPARE = 2  # bubblewrap's own processes
MORE_MEMORY = (
    1.25  # so that a command that grows slowly is ended as a whole, and told why, before the kernel ends a part
)
_numbers = itertools.count(1)
_in_use: set[Path] = set()  # folders of which some process was still about to end


class ControlGroup:
    """A folder in each hierarchy that counts processes or memory: of version 2 below the group of this process or
    beside it, or of version 1. None of it can be had by most users on a desktop; root, and a service of systemd with
    `Delegate`, get it."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders

    @classmethod
    def made(cls, limits: SandboxLimits, root: Path = ROOT, own: Path = OWN) -> ControlGroup:
        """With as many limits as can be set; with none where nothing can."""
        folders: list[Path] = []
        cls([*_in_use]).close()
        memory = str(int(limits.memory_bytes * MORE_MEMORY))
        values = {
            "pids.max": str(limits.processes + SPARE), "memory.max": memory, "memory.swap.max": "0",
            "memory.limit_in_bytes": memory,
        }  # fmt: skip
        for parent in _parents(root, own):
            folder = parent / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
            with suppress(OSError):
                _clear(parent)
                folder.mkdir()
                folders.append(folder)
                for name, value in values.items():
                    if (folder / name).exists():
                        (folder / name).write_text(value)
        return cls(folders)

    def add(self, pid: int) -> None:
        """A process, and all that it will start."""
        for folder in self._folders:
            with suppress(OSError):
                (folder / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        """Nothing of it runs any more; a folder that is in use a moment longer goes when the next one is made."""
        for folder in self._folders:
            _in_use.add(folder)
            with suppress(OSError):
                folder.rmdir()
                _in_use.discard(folder)


def _parents(root: Path, own: Path) -> Iterator[Path]:
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("pids", "memory"):
                yield root / controllers / path.lstrip("/")
            elif not controllers:
                group = root / path.lstrip("/")
                yield from (each for each in (group, group.parent) if _counts(each))


def _counts(group: Path) -> bool:
    """Whether groups below one of version 2 count processes."""
    with suppress(OSError):
        return "pids" in (group / "cgroup.subtree_control").read_text().split()
    return False


def _clear(parent: Path) -> None:
    """Remove what processes have left that are no more."""
    for old in parent.glob(f"{PREFIX}*"):
        pid = old.name.removeprefix(PREFIX).partition("-")[0]
        if not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                old.rmdir()
