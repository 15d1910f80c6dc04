"""By what processes in our sandboxes are known from outside, whatever they do: who they are in their user namespace."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

CONTAINED_ID = "64729"  # a number that no other program's sandboxes have; outside it is whoever runs LoCAL2
_PROC = Path("/proc")


def contained_processes() -> set[int]:
    """The processes that share our network, by process id. Of a sandbox that is there for as long as this takes, at
    least the process that holds it is among them; a sandbox has all that its processes start."""
    own_users, own_network = _namespace("self", "user"), _namespace("self", "net")
    found = set()
    for name in _processes():
        if _namespace(name, "user") != own_users and _is_ours(name) and _namespace(name, "net") in (own_network, ""):
            found.add(int(name))
    return found


def is_held_by(inode: int, *, but: set[int]) -> bool:
    """Whether a process that we may look into, and is none of these, holds the socket of that number."""
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
    """Empty where it is not told."""
    return _link(f"{_PROC}/{name}/ns/{kind}")


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - a third of the time
    except OSError:
        return ""
