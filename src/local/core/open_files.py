"""The limit of open files and sockets of a process: the soft limit, which may be raised up to the hard one."""

from __future__ import annotations

import resource
from contextlib import suppress

ENOUGH = 65_536


def most_open_files() -> int:
    """The limit of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """Raise the limit of this process, and of those that it starts, as far as it may be and is of use."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if wanted <= most_open_files():
        return
    with suppress(ValueError, OSError):  # the system may know of a further limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
