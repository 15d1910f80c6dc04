"""Commands contained by bubblewrap: namespaces of their own, a file system made for them, no way to further rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from local.containment import CONTAINED_ID
from local.errors import SandboxMissing
from local.services.sandbox.launch import CLEAN, SCRATCH, ContainedCommand, Launch
from local.services.sandbox.sandbox_limits import SandboxLimits
from local.services.sandbox.sandbox_view import ETC, SKILLS, SYSTEM, SandboxView
from local.services.sandbox.syscall_filter import syscall_filter

OLDEST = (0, 8)  # the first that can forbid further user namespaces
GET_IT = "install bubblewrap 0.8 or newer (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
ID = CONTAINED_ID  # who the command is inside
SCRIPT = "/run/script"
HOST_NAME = "sandbox"
PASSWD = f"root:x:0:0::/:/bin/false\nuser:x:{ID}:{ID}::{SCRATCH}:/bin/sh\n".encode()
GROUP = f"root:x:0:\nuser:x:{ID}:\n".encode()
HOSTS = b"127.0.0.1 localhost sandbox\n::1 localhost\n"
TRIAL_SECONDS = 10.0


class Bubblewrap:
    """Makes launches with one `bwrap`. What a command can write to is its workspace and a /tmp that ends with it."""

    def __init__(self, program: str) -> None:
        self._program = program

    @classmethod
    def found(cls) -> Bubblewrap:
        """The one that is installed. Raises `SandboxMissing` if there is none, it is too old, or it cannot contain
        anything on this machine; its text says what to do."""
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxMissing("there is no bubblewrap, without which no command is run", GET_IT)
        asked = _ran(program, "--version")
        version = re.search(r"(\d+)\.(\d+)", asked.stdout)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            raise SandboxMissing(f"{program} is {asked.stdout.strip() or 'of no known version'}", GET_IT)
        tried = _ran(program, *_NAMESPACES, "--ro-bind", "/", "/", "--proc", "/proc", "true")
        if tried.returncode:
            why = tried.stderr.strip() or f"it ended with {tried.returncode}"
            raise SandboxMissing(
                f"{program} cannot contain a command here: {why}",
                "allow user namespaces (Ubuntu: an AppArmor profile for bwrap; containers: --security-opt"
                " seccomp=unconfined or a runtime that allows them)",
            )
        return cls(program)

    def launch(self, command: ContainedCommand, view: SandboxView, limits: SandboxLimits) -> Launch:
        """The launch of one command. Raises `OSError` where a file for it cannot be made."""
        launch = Launch(self._program, *_NAMESPACES, "--clearenv", reports=True)
        if view.network:
            launch.add("--share-net", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
        variables = {**CLEAN, **command.environment}.items()
        given = "".join(f"--setenv\0{name}\0{value}\0" for name, value in variables)
        launch.add("--args", launch.hand(given.encode()))  # a value may be a secret, and arguments are seen by all
        launch.add(*_system())
        for name, data in (("passwd", PASSWD), ("group", GROUP), ("hosts", HOSTS)):
            launch.add("--ro-bind-data", launch.hand(data), f"/etc/{name}")
        launch.add("--proc", "/proc", *_closed_proc(), "--dev", "/dev")
        for place in ("/dev/shm", SCRATCH):
            launch.add("--perms", "1777", "--size", str(limits.scratch_bytes), "--tmpfs", place)
        argv = list(command.argv)
        if command.script is not None:
            launch.add("--perms", "0500", "--ro-bind-data", launch.hand(command.script), SCRIPT)
            argv += [SCRIPT, *command.arguments]
        for folder in view.readable:
            launch.add("--ro-bind", str(folder.resolve()), str(folder))
        for folder in view.skills:
            launch.add("--ro-bind-try", str(folder), f"{SKILLS}/{folder.name}")
        workspace = view.workspace.resolve()
        launch.add(
            "--bind" if view.writable else "--ro-bind",
            str(workspace),
            str(workspace),
            "--remount-ro",
            "/dev",
            "--remount-ro",
            "/",
        )
        launch.add("--chdir", os.path.normpath(workspace / command.folder))
        if (program := syscall_filter()) is not None:
            launch.add("--seccomp", launch.hand(program))
        launch.add("--", *argv)
        return launch


# No capability is left in any of them; a new session has no terminal into which characters could be pushed.
_NAMESPACES = (
    "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
    "--disable-userns", "--uid", ID, "--gid", ID, "--cap-drop", "ALL", "--new-session", "--die-with-parent",
    "--hostname", HOST_NAME,
)  # fmt: skip


def _system() -> Iterator[str]:
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)
    for name in ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _closed_proc() -> Iterator[str]:
    """What lies in /proc beside the processes can be changed by whoever is root outside, so it is made read-only; and
    of the process that holds the sandbox nothing is seen, since no filter of calls is on it."""
    for path in sorted(Path("/proc").iterdir()):
        if not path.name.isdecimal() and not path.is_symlink() and (path.is_dir() or path.stat().st_mode & 0o222):
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--tmpfs", "/proc/1", "--remount-ro", "/proc/1")


def _ran(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(argv, 1, "", str(error))
