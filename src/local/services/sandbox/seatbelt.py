"""Commands contained by macOS's own sandbox-exec: what they may read, write and reach, as a profile for the kernel.

It has no namespaces: other processes are seen, though not touched, and a command's descendants that leave its process
group outlive it. Nobody has run this on a Mac so far.
"""

from __future__ import annotations

import os
from pathlib import Path

from local.errors import SandboxMissing
from local.services.sandbox.launch import CLEAN, ContainedCommand, Launch
from local.services.sandbox.sandbox_limits import SandboxLimits
from local.services.sandbox.sandbox_view import SandboxView

PROGRAM = "/usr/bin/sandbox-exec"
READABLE = (
    "/bin", "/sbin", "/usr", "/System", "/Library", "/opt/homebrew", "/private/etc", "/private/var/db/timezone", "/dev",
    "/private/var/select",
)  # fmt: skip
LIMITED = 'ulimit -c 0 -n "$1" -f "$2" -u "$3"; shift 3; exec /usr/bin/env -i "$@"'
BLOCK = 512  # bytes, in which ulimit counts files


class Seatbelt:
    """Makes launches with sandbox-exec. The scratch folder is in the workspace: there is no /tmp of its own."""

    @classmethod
    def found(cls) -> Seatbelt:
        """The one that is a part of macOS. Raises `SandboxMissing`."""
        if not os.access(PROGRAM, os.X_OK):
            raise SandboxMissing(f"{PROGRAM} is not there, without which no command is run", "it is a part of macOS")
        return cls()

    def launch(self, command: ContainedCommand, view: SandboxView, limits: SandboxLimits) -> Launch:
        """The launch of one command; a script goes in as the argument after `-c`."""
        workspace = view.workspace.resolve()
        variables = {**CLEAN, "HOME": str(workspace), "TMPDIR": str(workspace), **command.environment}
        argv = list(command.argv)
        if command.script is not None:
            argv += ["-c", command.script.decode("utf-8", "replace"), "script", *command.arguments]
        launch = Launch(PROGRAM, "-p", profile(view), "/bin/sh", "-c", LIMITED, "sh", folder=workspace / command.folder)
        launch.add(str(limits.open_files), str(limits.file_bytes // BLOCK), str(limits.processes))
        launch.add(*(f"{name}={value}" for name, value in variables.items()), *argv)
        return launch


def profile(view: SandboxView) -> str:
    """The rules: everything is denied but what is named."""
    readable = [*READABLE, *(str(folder.resolve()) for folder in (*view.readable, *view.skills))]
    workspace = _quoted(view.workspace.resolve())
    lines = [
        "(version 1)", "(deny default)", "(allow process-exec process-fork)", "(allow signal (target same-sandbox))",
        "(allow sysctl-read)", "(allow file-read-metadata)",
        *(f"(allow file-read* (subpath {_quoted(Path(folder))}))" for folder in readable),
        f"(allow file-read*{' file-write*' if view.writable else ''} (subpath {workspace}))",
        '(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))',
        "(allow network*)" if view.network else "(deny network*)",
    ]  # fmt: skip
    return "\n".join(lines)


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
