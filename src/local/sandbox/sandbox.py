"""The sandboxes for commands on this machine."""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from local.core.errors import SandboxMissing, SandboxRefused
from local.core.files import CONTAINED_ID
from local.sandbox.process import CLEAN, IN_MEMORY, SCRATCH, ContainedCommand, Launch, SandboxLimits

# The part of this machine that a sandboxed command sees.

# The files that programs need to start, to name users and hosts, and to check certificates; private keys are elsewhere.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "magic",
    "mime.types", "nsswitch.conf", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols", "python3", "services",
    "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip


SKILLS = "/skills"  # where the folders of skills are, each by its name


def skill_path(name: str, folder: Path, platform: str = sys.platform) -> str:
    """Return where a sandboxed command finds the folder of a skill; on macOS only at its real path."""
    return str(folder) if platform == "darwin" else f"{SKILLS}/{name}"


@dataclass(frozen=True, slots=True)
class SandboxView:
    """The part of the machine that a command sees: the workspace, which can be written to if it is `writable`, and
    further folders that can be read. `closed` are folders that are never visible: the data directory, the settings, the
    keys.

    Raises `SandboxRefused` for a workspace or a folder to read that contains one of the closed ones or is in it, and
    for one that is the home directory, the root or a part of the system. The workspace and the folders of `skills` may
    be in a closed folder: nothing else of that is visible.
    """

    workspace: Path
    readable: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = ()
    writable: bool = True
    skills: tuple[Path, ...] = ()
    network: bool = False  # of this machine, with its own ports

    def __post_init__(self) -> None:
        home = Path.home().resolve()
        system = [Path(name) for name in (*SYSTEM, "/etc", "/proc", "/sys", "/dev", "/run", "/tmp", "/boot")]
        for folder in (self.workspace, *self.readable, *self.skills):
            real = folder.resolve()
            holds = [closed for closed in (home, *self.closed) if _is_inside(closed.resolve(), real)]
            if holds:
                raise SandboxRefused(f"{folder} holds {holds[0]}, which no command may see: choose a folder below it")
        real = self.workspace.resolve()
        for part in system:
            if real == part or (part != Path("/tmp") and _is_inside(real, part)):
                raise SandboxRefused(f"the workspace {self.workspace} is a part of the system: choose another folder")
        for folder in self.readable:
            if any(_is_inside(folder.resolve(), closed.resolve()) for closed in self.closed):
                raise SandboxRefused(f"{folder} is private to LoCAL2, and no command may read it")


def _is_inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


# The system calls that no contained command may make, as a program for the kernel's seccomp filter.

X86_64, AARCH64 = 0xC000003E, 0xC00000B7  # AUDIT_ARCH_* of linux/audit.h
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1), "arm64": (AARCH64, 1)}  # with the column of the table
X32_CALLS = 0x40000000  # x86-64's second set of numbers, from here on
NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* of clone(2)
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: those that a network namespace separates
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# The numbers on x86-64 and on arm64; None if there is no such call. A missing call returns ENOSYS, and callers do
# without it.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "iopl": (172, None), "ioperm": (173, None),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116), "vhangup": (153, 58),
    "fanotify_init": (300, 262),
}  # fmt: skip
MISSING: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),  # its flags are in memory, where no filter can read them
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
}  # fmt: skip
CLONE, SOCKET, IOCTL = (56, 220), (41, 198), (16, 29)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; low halves of the arguments
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def syscall_filter() -> bytes | None:
    """The program for this kind of machine; None where its numbers are not known."""
    arch, column = MACHINES.get(platform.machine(), (0, 0))
    if not arch:
        return None
    program = [_step(_LOAD, k=_ARCH), _step(_EQUAL, 1, 0, arch), _fail(errno.ENOSYS), _step(_LOAD, k=_NUMBER)]
    program += [_step(_AT_LEAST, 0, 1, X32_CALLS), _fail(errno.ENOSYS)]
    for calls, code in ((REFUSED, errno.EPERM), (MISSING, errno.ENOSYS)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                program += [_step(_EQUAL, 0, 1, number), _fail(code)]
    program += _looked_into(CLONE[column], _FIRST, [_step(_ANY_BIT, 0, 1, NEW_NAMESPACES), _fail(errno.EPERM)])
    program += _looked_into(IOCTL[column], _SECOND, [
        step for request in TERMINAL_INPUT for step in (_step(_EQUAL, 0, 1, request), _fail(errno.EPERM))
    ])  # fmt: skip
    allowed = [step for family in FAMILIES for step in (_step(_EQUAL, 0, 1, family), _step(_RETURN, k=_ALLOW))]
    program += _looked_into(SOCKET[column], _FIRST, [*allowed, _fail(errno.EAFNOSUPPORT)])
    return b"".join([*program, _step(_RETURN, k=_ALLOW)])


def _looked_into(number: int, argument: int, checks: list[bytes]) -> list[bytes]:
    """Return the filter for one call by the low half of an argument; the call is allowed if no check returns."""
    body = [_step(_LOAD, k=argument), *checks, _step(_RETURN, k=_ALLOW)]
    return [_step(_EQUAL, 0, len(body), number), *body]


def _fail(code: int) -> bytes:
    return _step(_RETURN, k=_ERRNO | code)


def _step(code: int, then: int = 0, otherwise: int = 0, k: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, k)


# Commands contained by bubblewrap: namespaces of their own, a file system made for them, no way to further rights.

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
    """The sandbox of Linux, made by one `bwrap`. A command can write to its workspace and to a /tmp that ends
    with it.
    """

    def __init__(self, program: str) -> None:
        self._program = program

    @classmethod
    def found(cls) -> Bubblewrap:
        """Return the installed one. Raises `SandboxMissing` if there is none, it is too old, or it cannot contain
        anything on this machine; its text says what to do.
        """
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
        for place in reversed(IN_MEMORY):
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
    """The files in /proc besides the processes can be changed by root of the outer system, so it is read-only; and the
    process that holds the sandbox is hidden, because no filter of calls is on it.
    """
    for path in sorted(Path("/proc").iterdir()):
        if not path.name.isdecimal() and not path.is_symlink() and (path.is_dir() or path.stat().st_mode & 0o222):
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--tmpfs", "/proc/1", "--remount-ro", "/proc/1")


def _ran(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(argv, 1, "", str(error))


# Commands in macOS's own sandbox-exec: what they may read, write and reach, as a profile for the kernel.

PROGRAM = "/usr/bin/sandbox-exec"
READABLE = (
    "/bin", "/sbin", "/usr", "/System", "/Library", "/opt/homebrew", "/private/etc", "/private/var/db/timezone", "/dev",
    "/private/var/select",
)  # fmt: skip
LIMITED = 'ulimit -c 0 -n "$1" -f "$2" -u "$3"; shift 3; exec /usr/bin/env -i "$@"'
BLOCK = 512  # bytes, in which ulimit counts files


class Seatbelt:
    """The sandbox of macOS, made by sandbox-exec. The scratch folder is in the workspace: there is no separate /tmp."""

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
    """Return the rules: everything is denied except what is named."""
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


class Sandbox(Protocol):
    """A way to contain commands: makes the launch of a command that can reach what a view shows, and nothing else."""

    def launch(self, command: ContainedCommand, view: SandboxView, limits: SandboxLimits) -> Launch:
        """The launch of one command. Raises `OSError` where a file for it cannot be made."""


def sandbox_of_this_machine(platform: str = sys.platform) -> Sandbox:
    """Return the sandbox of this machine. Raises `SandboxMissing`, which says how to get one."""
    return Seatbelt.found() if platform == "darwin" else Bubblewrap.found()
