"""How a contained command ended, and what that means in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from local.services.sandbox.sandbox_limits import MB, SandboxLimits

SIGNAL_BASE = 128
FOUND_NOTHING = {"grep", "egrep", "fgrep", "rg", "pgrep", "ag"}
DIFFERENT = {"diff", "cmp", "colordiff"}
SIGNALS = {
    "SIGKILL": "it was killed, mostly for want of memory",
    "SIGSEGV": "it read or wrote memory that is not its own",
    "SIGABRT": "it gave up by itself, as a failed assertion does",
    "SIGBUS": "it read or wrote memory that is not there",
    "SIGFPE": "it calculated what cannot be, such as a division by zero",
    "SIGILL": "it is made for another processor",
    "SIGPIPE": "whoever read its output had ended",
    "SIGXFSZ": "a file was about to grow beyond the limit",
    "SIGSYS": "it asked the system for what is not allowed here",
}


class EndedBy(StrEnum):
    """What ended a command: itself, somebody who stopped it, or the limit that it had reached."""

    ITSELF = "itself"
    STOPPED = "stopped"
    TIME = "time"
    MEMORY = "memory"
    PROCESSES = "processes"
    OUTPUT = "output"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """`code` is that of the command, 128 and the signal's number if one has ended it, and None if a limit has."""

    ended_by: EndedBy
    code: int | None
    seconds: float

    def explained(self, argv: Sequence[str], limits: SandboxLimits) -> str:
        """One line for the model: how it ended, after how long, and what that means."""
        if self.ended_by is not EndedBy.ITSELF:
            return f"{_by_limit(self.ended_by, limits)}, after {self.seconds:.1f} s; all of its processes have ended"
        meaning = _meaning(self.code or 0, PurePath(argv[0]).name if argv else "")
        return f"exit code {self.code} after {self.seconds:.1f} s" + (f": {meaning}" if meaning else "")


def _by_limit(ended_by: EndedBy, limits: SandboxLimits) -> str:
    return {
        EndedBy.STOPPED: "stopped on request",
        EndedBy.TIME: f"ended because it did not finish within {limits.seconds:g} s",
        EndedBy.MEMORY: f"ended because it took more than {limits.memory_bytes // MB} MB of memory",
        EndedBy.PROCESSES: f"ended because it had more than {limits.processes} processes and threads",
        EndedBy.OUTPUT: f"ended because it wrote more than {limits.output_bytes // MB} MB of output",
        EndedBy.DISK: f"ended because less than {limits.free_bytes // MB} MB were left on the disk",
    }[ended_by]


def _meaning(code: int, program: str) -> str:
    if code == 1 and program in FOUND_NOTHING:
        return "nothing was found"
    if code == 1 and program in DIFFERENT:
        return "there are differences"
    fixed = {
        124: "a time limit of its own was over" if program == "timeout" else "",
        126: "it was found, and cannot be executed: no permission, or no program",
        127: "a command was not found: it is not installed, or not on the path",
    }
    if code in fixed:
        return fixed[code]
    try:
        name = signal.Signals(code - SIGNAL_BASE).name
    except ValueError:
        return ""
    return f"ended by {name}" + (f", {SIGNALS[name]}" if name in SIGNALS else "")
