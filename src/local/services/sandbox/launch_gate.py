"""Holds a sandbox back until its limits are set, and hears from it how its command has ended."""

from __future__ import annotations

import json
import os
import resource
from contextlib import suppress
from typing import Any

from local.services.sandbox.control_group import ControlGroup
from local.services.sandbox.sandbox_limits import SandboxLimits

READ_BYTES = 64 * 1024


class LaunchGate:
    """Two pipes to one bubblewrap: it reports on the first, and waits for leave on the second.

    Both ends of the second go along: without this process nobody gives leave, and the command never begins.
    """

    def __init__(self) -> None:
        self._report, self._reporting = os.pipe()
        self._leave, self._giving = os.pipe()
        self._group = ControlGroup([])
        self.descriptors = (self._reporting, self._leave, self._giving)
        self.options = ("--json-status-fd", str(self._reporting), "--block-fd", str(self._leave))

    def started(self) -> None:
        """The program has its ends: what it reports ends when it does."""
        os.close(self._reporting)
        self._reporting = -1

    def open(self, limits: SandboxLimits) -> None:
        """Set the limits on the process in the sandbox, from which all others inherit them, and give it leave. Blocks
        until it is there. Without limits there is no leave; one that has failed already will say why. Raises `OSError`
        where limits cannot be set."""
        said = b""
        while not said.endswith(b"\n") and (more := os.read(self._report, READ_BYTES)):
            said += more
        pid = self._reports(said).get("child-pid")
        if not isinstance(pid, int):
            return
        self._group = ControlGroup.made(limits)
        self._group.add(pid)
        for kind, value in _rlimits(limits).items():
            resource.prlimit(pid, kind, (value, value))
        os.write(self._giving, b"!")

    def exit_code(self) -> int | None:
        """The exit code of the command, once all is over; None if it never began."""
        os.set_blocking(self._report, False)
        with suppress(BlockingIOError):
            code = self._reports(os.read(self._report, READ_BYTES)).get("exit-code")
            return code if isinstance(code, int) else None
        return None

    def close(self) -> None:
        """Nothing more is heard or said."""
        self._group.close()
        for descriptor in (self._report, self._reporting, self._leave, self._giving):
            with suppress(OSError):
                os.close(descriptor)
        self._report = self._reporting = self._leave = self._giving = -1

    @staticmethod
    def _reports(said: bytes) -> dict[str, Any]:
        """What its lines say together, each of which is a JSON object."""
        found: dict[str, Any] = {}
        for line in said.splitlines():
            with suppress(ValueError, TypeError):
                found.update(json.loads(line))
        return found


def _rlimits(limits: SandboxLimits) -> dict[int, int]:
    return {
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
