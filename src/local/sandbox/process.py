"""One command while it runs in its sandbox: its output as it comes, its limits, and its end with all of its
processes.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import resource
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePath
from types import TracebackType
from typing import IO, Any, Self

from local.core.errors import ToolError

# The resources of a sandboxed command.

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one command. `memory_bytes` and `processes` are for all processes of a command together,
    `file_bytes` for each file that it writes, `scratch_bytes` and `scratch_files` for its /tmp, which is in memory;
    `free_bytes` of the workspace's disk stay free, and room for `free_files` on it.
    """

    seconds: float = 120.0
    memory_bytes: int = 2048 * MB
    processes: int = 256
    open_files: int = 1024
    file_bytes: int = 512 * MB
    scratch_bytes: int = 256 * MB
    scratch_files: int = 100_000
    output_bytes: int = 32 * MB
    free_bytes: int = 512 * MB
    free_files: int = 10_000


# The end of a sandboxed command, and its explanation.

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
    """The reason why a command ended: by itself, stopped by a request, or at a limit."""

    ITSELF = "itself"
    STOPPED = "stopped"
    TIME = "time"
    MEMORY = "memory"
    PROCESSES = "processes"
    OUTPUT = "output"
    DISK = "disk"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The end of a command. `code` is that of the command, 128 and the signal's number if one has ended it, and None if
    a limit has."""

    ended_by: EndedBy
    code: int | None
    seconds: float

    def explained(self, argv: Sequence[str], limits: SandboxLimits) -> str:
        """Return one line for the model: how it ended, after how long, and what that means."""
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
        EndedBy.FILES: f"ended because it made more than {limits.scratch_files} files in /tmp or /dev/shm, or left room"
        f" for less than {limits.free_files} on the disk",
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


# How a contained command is started: a program with its arguments, and the files that are handed to it.

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SCRATCH = "/tmp"
IN_MEMORY = (SCRATCH, "/dev/shm")  # file systems of the sandbox
CLEAN: Mapping[str, str] = {
    "PATH": PATH, "HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8", "TERM": "dumb", "USER": "user",
    "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContainedCommand:
    """A command to run: an argument vector, or a `script` that the program named in it is given, before the
    `arguments` of the script. `folder` counts from the workspace, `environment` comes on top of the clean one."""

    argv: Sequence[str]
    folder: str = "."
    script: bytes | None = None
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Launch:
    """The start of one program: its argument vector under construction, with the descriptors that it names; closed when
    the program has them. One that `reports` takes bubblewrap's options for saying how it is, after the program's name;
    `folder` is where it is started, if that matters."""

    def __init__(self, *argv: str, reports: bool = False, folder: Path | None = None) -> None:
        self.argv = list(argv)
        self.reports, self.folder = reports, folder
        self.descriptors: list[int] = []
        self._files = ExitStack()

    def add(self, *arguments: str) -> None:
        """Further arguments."""
        self.argv += arguments

    def hand(self, data: bytes) -> str:
        """The number of a descriptor from which the program can read `data`. Raises `OSError`."""
        file: IO[bytes] = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the launch
        file.write(data)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return self.hold(file.fileno())

    def hold(self, descriptor: int) -> str:
        """Name a descriptor that the program is to inherit."""
        self.descriptors.append(descriptor)
        return str(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()


# The kernel's own count of the resources of one command and its processes, if available.

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
PREFIX = "local2-"
SPARE = 2  # bubblewrap's own processes
MORE_MEMORY = (
    1.25  # so that a slowly growing command is ended as a whole, with its reason, before the kernel ends a part of it
)
_numbers = itertools.count(1)
_in_use: set[Path] = set()  # folders with a process that was still ending


class ControlGroup:
    """The kernel's limits for one command, as far as available: a folder in each hierarchy of control groups, of
    version 2 below the group of this process or beside it, or of version 1. Most users on a desktop cannot use them;
    root, and a service of systemd with `Delegate`, can.
    """

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

    def held_bytes(self) -> int | None:
        """Return the memory counted by the kernel, without the cache of files; None if it is not counted."""
        for folder in self._folders:
            with suppress(OSError, ValueError):
                counted = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                names = ("total_rss", "total_shmem") if "total_rss" in counted else ("anon", "shmem")
                return sum(int(counted.get(name, 0)) for name in names)
        return None

    def close(self) -> None:
        """Remove the folder after the end of all processes; one that is in use a moment longer is removed with the next
        one.
        """
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
    """Remove the folders of processes that have ended."""
    for old in parent.glob(f"{PREFIX}*"):
        pid = old.name.removeprefix(PREFIX).partition("-")[0]
        if not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                old.rmdir()


# Holds a sandbox back until its limits are set, and receives the exit code of its command.

READ_BYTES = 64 * 1024


class LaunchGate:
    """Holds one bubblewrap back until its limits are set, by two pipes: it reports on the first and waits on the
    second.

    It inherits both ends of the second: if this process ends, the command never begins.
    """

    def __init__(self) -> None:
        self._report, self._reporting = os.pipe()
        self._leave, self._giving = os.pipe()
        self._group = ControlGroup([])
        self.descriptors = (self._reporting, self._leave, self._giving)
        self.options = ("--json-status-fd", str(self._reporting), "--block-fd", str(self._leave))

    def started(self) -> None:
        """Close our copies of the program's ends: its reports then end with it."""
        os.close(self._reporting)
        self._reporting = -1

    def open(self, limits: SandboxLimits) -> None:
        """Set the limits on the process in the sandbox, from which all others inherit them, and let the command begin.
        Blocks until the process exists. Without limits the command does not begin; a failed start reports its own
        error. Raises `OSError` if limits cannot be set.
        """
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

    def held_bytes(self) -> int | None:
        """Return the memory counted by the kernel; None if it is not counted."""
        return self._group.held_bytes()

    def exit_code(self) -> int | None:
        """Return the exit code of the command after its end; None if it never began."""
        os.set_blocking(self._report, False)
        with suppress(BlockingIOError):
            code = self._reports(os.read(self._report, READ_BYTES)).get("exit-code")
            return code if isinstance(code, int) else None
        return None

    def close(self) -> None:
        """Close the pipes."""
        self._group.close()
        for descriptor in (self._report, self._reporting, self._leave, self._giving):
            with suppress(OSError):
                os.close(descriptor)
        self._report = self._reporting = self._leave = self._giving = -1

    @staticmethod
    def _reports(said: bytes) -> dict[str, Any]:
        """Return the combined content of its lines, each of which is a JSON object."""
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


# All that a command has written, in the order in which it came.

SPOOLED = 1024 * 1024  # bytes that are held in memory before a file is made


class OutputFile:
    """All output of a command: bytes are appended, any part is read again. The file has no name, and disappears with
    its last holder.
    """

    def __init__(self) -> None:
        self.size = 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=SPOOLED)  # noqa: SIM115 - closed by `close`

    def append(self, data: bytes) -> None:
        """More of it. Raises `OSError` on a full disk."""
        self._file.seek(0, 2)
        self._file.write(data)
        self.size += len(data)

    def part(self, start: int, length: int) -> bytes:
        """Return so many bytes from `start` on; fewer at the end."""
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# A process with all its descendants: how many they are, and how much memory they hold.

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
_NEAREST = 4  # members of a tree, among which bubblewrap's own are
NO_DEVICE = "00:00"  # of memory without a file
_THREADS, _PAGES = 17, 21  # in /proc/<pid>/stat, counted from after the name


class ProcessTree:
    """A process with all its descendants, as /proc lists them: a snapshot."""

    def __init__(self, root: int) -> None:
        self.root = root

    def members(self, at_most: int = 100_000) -> list[int]:
        """Return the process ids, the root's first; at most so many."""
        found = [self.root]
        for pid in found:
            if len(found) >= at_most:
                break
            found += _children(pid)
        return found

    def usage(self, at_most: int) -> tuple[int, int]:
        """Return the number of threads of all processes, and their bytes of memory, with shared memory counted once for
        each of them; at most `at_most` processes are examined.
        """
        threads = pages = 0
        for pid in self.members(at_most + 1):
            with suppress(OSError, IndexError, ValueError):
                fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
                threads += int(fields[_THREADS])
                pages += int(fields[_PAGES])
        return threads, pages * PAGE

    def hold_more_than(self, most: int) -> bool:
        """Whether they hold more bytes than that, with what is shared counted once; slower to find out, unless one of
        them alone holds so much, also while the others are looked at."""
        members = self.members()
        least, biggest = max((_least(pid, most), pid) for pid in members)
        if least > most:
            return True
        held = 0
        for pid in members:
            held += _proportional(pid)
            if held > most or _least(biggest, most) > most:
                return True
        return False

    def files_in(self, folder: str) -> int:
        """Return how many files there are in a file system that only the processes in the sandbox see at that path."""
        for pid in reversed(self.members(_NEAREST)):  # bubblewrap's own processes may not be readable
            root = PROC / str(pid) / "root"
            with suppress(OSError):
                if not root.samefile("/"):
                    found = os.statvfs(root / folder.lstrip("/"))
                    return found.f_files - found.f_ffree
        return 0

    def signal(self, number: signal.Signals, spare: int = 0) -> None:
        """Send a signal to all but the first `spare` of them."""
        for pid in self.members()[spare:]:
            with suppress(OSError):
                os.kill(pid, number)


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError, ValueError):
        for task in (PROC / str(pid) / "task").iterdir():
            yield from map(int, (task / "children").read_text().split())


def _least(pid: int, most: int) -> int:
    """Return a lower bound of a process's memory in bytes, exact only above `most`. The kernel has this number, while
    for a proportional share it examines each page.
    """
    with suppress(OSError, ValueError, KeyError):
        status = dict(line.split(":", 1) for line in (PROC / str(pid) / "status").read_text().splitlines())
        held = sum(int(status[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))
        return held - _mapped_again(pid) if held > most else held
    return 0


def _mapped_again(pid: int) -> int:
    """The bytes that a process may have mapped before, which the kernel counts each time."""
    sizes: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for line in (PROC / str(pid) / "maps").read_text().splitlines():
        addresses, _, _, device, inode = line.split()[:5]
        start, end = (int(address, 16) for address in addresses.split("-"))
        if device != NO_DEVICE:
            sizes[device, inode].append(end - start)
    return sum(sum(each) - max(each) for each in sizes.values())


def _proportional(pid: int) -> int:
    """Return a process's memory in bytes, with shared memory divided among the sharing processes."""
    with suppress(OSError, ValueError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


LOOK_SECONDS = 0.1  # between two looks at the processes' resources; after EARLY_SECONDS, LATER_LOOK_SECONDS
LATER_LOOK_SECONDS = 0.25
EARLY_SECONDS = 2.0
GRACE_SECONDS = 2.0  # between the word to stop and the end
REST_SECONDS = 10.0  # for the rest of the output when all processes have ended: only a busy machine takes long
SANDBOX_PROCESSES = 2  # bubblewrap outside and inside, which are not the command's


class ContainedProcess:
    """A command in its sandbox, with limits. It is begun by `start`; `output` grows while it runs, `heard` is called
    for each addition.

    With bubblewrap, none of its processes outlives this one: bubblewrap ends with its parent, and the command's process
    namespace with bubblewrap.
    """

    def __init__(self, workspace: Path, limits: SandboxLimits, heard: Callable[[], object]) -> None:
        self.output = OutputFile()
        self.limits = limits
        self._workspace, self._heard = workspace, heard
        self._ended_by = EndedBy.ITSELF
        self._started = time.monotonic()
        self._gate: LaunchGate | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, launch: Launch) -> None:
        """Begin. Raises `ToolError`: too_long for an argument list that no system takes, start_failed."""
        with launch:
            self._gate = LaunchGate() if launch.reports else None
            held = self._gate.descriptors if self._gate else ()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    launch.argv[0], *(self._gate.options if self._gate else ()), *launch.argv[1:], cwd=launch.folder,
                    pass_fds=(*launch.descriptors, *held), stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                if self._gate is not None:
                    self._gate.started()
                    await asyncio.to_thread(self._gate.open, self.limits)
            except (OSError, ValueError) as error:
                self.close()
                raise _not_started(error) from None
            except asyncio.CancelledError:
                self.close()
                raise

    async def wait(self) -> CommandOutcome:
        """Wait until it has ended, by itself or at a limit. When cancelled, it ends the command. Raises `ToolError`
        (start_failed) if the sandbox itself has failed.
        """
        assert self._process is not None
        reading = asyncio.create_task(self._read(self._process))
        watching = asyncio.create_task(self._watch(ProcessTree(self._process.pid)))
        try:
            async with asyncio.timeout(self.limits.seconds):
                await self._process.wait()
        except TimeoutError:
            self._end(EndedBy.TIME)
            await self._process.wait()
        finally:
            watching.cancel()
            self.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(reading, REST_SECONDS)
        return self._outcome(self._process)

    async def stop(self) -> None:
        """Ask all processes to end, and end those that do not within two seconds."""
        if self._process is None or self._process.returncode is not None:
            return
        self._ended_by = EndedBy.STOPPED
        ProcessTree(self._process.pid).signal(signal.SIGTERM, spare=SANDBOX_PROCESSES if self._gate else 0)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), GRACE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End every process of it at once; nothing if it has ended."""
        if self._process is not None and self._process.returncode is None:
            if self._ended_by is EndedBy.ITSELF:
                self._ended_by = EndedBy.STOPPED
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and release its output."""
        self.kill()
        self.output.close()
        if self._gate is not None:
            self._gate.close()

    def _end(self, why: EndedBy) -> None:
        if self._ended_by is EndedBy.ITSELF:
            self._ended_by = why
        self.kill()

    def _outcome(self, process: asyncio.subprocess.Process) -> CommandOutcome:
        seconds = time.monotonic() - self._started
        code = process.returncode or 0
        code = SIGNAL_BASE - code if code < 0 else code
        if self._gate is not None:
            told = self._gate.exit_code()
            if self._ended_by is EndedBy.ITSELF and told is None:
                said = self.output.part(0, 1000).decode("utf-8", "replace").strip()
                raise ToolError(f"the sandbox could not be made: {said or code}", kind="start_failed")
        return CommandOutcome(self._ended_by, code if self._ended_by is EndedBy.ITSELF else None, seconds)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Read until all writers have ended: output after an end at a limit is dropped, but read, or the end of the
        process would not be noticed.
        """
        assert process.stdout is not None
        while data := await process.stdout.read(READ_BYTES):
            if self._ended_by is EndedBy.ITSELF or self._ended_by is EndedBy.STOPPED:
                self._add(data)

    def _add(self, data: bytes) -> None:
        room = self.limits.output_bytes - self.output.size
        try:
            self.output.append(data[:room])
        except OSError:
            self._end(EndedBy.DISK)
        self._heard()
        if len(data) > room:
            self._end(EndedBy.OUTPUT)

    async def _watch(self, tree: ProcessTree) -> None:
        """Check the resources of all processes together, which no limit of a single one covers."""
        while True:
            early = time.monotonic() - self._started < EARLY_SECONDS
            await asyncio.sleep(LOOK_SECONDS if early else LATER_LOOK_SECONDS)
            if why := await asyncio.to_thread(self._over, tree):  # for many processes a look takes long
                self._ended_by = why if self._ended_by is EndedBy.ITSELF else self._ended_by
                # All at once: bubblewrap would have to wait for a processor among them before it could end the others.
                await asyncio.to_thread(tree.signal, signal.SIGKILL)
                self.kill()

    def _over(self, tree: ProcessTree) -> EndedBy | None:
        allowed = self.limits.processes + SANDBOX_PROCESSES
        threads, held = tree.usage(allowed)
        if threads > allowed:
            return EndedBy.PROCESSES
        most, counted = self.limits.memory_bytes, self._gate.held_bytes() if self._gate else None
        if (counted is not None and counted > most) or (counted is None and held > most and tree.hold_more_than(most)):
            return EndedBy.MEMORY
        disk = os.statvfs(self._workspace)
        if disk.f_bavail * disk.f_frsize < self.limits.free_bytes:
            return EndedBy.DISK
        is_full = disk.f_files > 0 and disk.f_favail < self.limits.free_files  # some file systems do not count
        is_over = any(tree.files_in(place) > self.limits.scratch_files for place in IN_MEMORY) if self._gate else False
        return EndedBy.FILES if is_full or is_over else None


def _not_started(error: OSError | ValueError) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError(f"the command cannot be given to a program: {error}", kind="bad_arguments")
    if error.errno == errno.E2BIG:
        return ToolError("the arguments are longer than a program can be given: put them into a file", kind="too_long")
    return ToolError(f"the command could not be started: {error.strerror}", kind="start_failed")


# A program that serves on its standard input and output, in its sandbox, until it ends or is closed.

LINE_BYTES = 16 * 1024 * 1024
KEPT_BYTES = 2000  # of the last error output
END_SECONDS = 2.0  # for one whose input has ended


class ContainedServer:
    """A server in its sandbox that reads and writes lines, for as long as `contained` holds it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said, self._killed_for = b"", ""

    @classmethod
    @asynccontextmanager
    async def contained(cls, launch: Launch, limits: SandboxLimits) -> AsyncIterator[ContainedServer]:
        """Start it, and end it with all that it has started. Raises `ToolError` (start_failed)."""
        gate = LaunchGate() if launch.reports else None
        try:
            process = await cls._started(launch, limits, gate)
            server = cls(process)
            hearing = asyncio.create_task(server._read_errors())
            try:
                yield server
            finally:
                await server._end()
                hearing.cancel()
        finally:
            if gate is not None:
                gate.close()

    @staticmethod
    async def _started(launch: Launch, limits: SandboxLimits, gate: LaunchGate | None) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        with launch:
            try:
                process = await asyncio.create_subprocess_exec(
                    launch.argv[0], *(gate.options if gate else ()), *launch.argv[1:], cwd=launch.folder,
                    pass_fds=(*launch.descriptors, *(gate.descriptors if gate else ())), stdin=pipe, stdout=pipe,
                    stderr=pipe, start_new_session=True, limit=LINE_BYTES,
                )  # fmt: skip
                if gate is not None:
                    gate.started()
                    await asyncio.to_thread(gate.open, limits)
            except (OSError, ValueError) as error:
                raise ToolError(f"it could not be started: {error}", kind="start_failed") from None
        return process

    async def read_line(self) -> bytes:
        """Return the next line; empty when no more will come. One with too much output at once is ended."""
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.readline()
        except ValueError:
            self._kill(f"it wrote a line of more than {LINE_BYTES // 1024**2} MB")
        await self._drain()
        return b""

    async def write_line(self, line: bytes) -> None:
        """Write a line. Raises `OSError` if it no longer reads."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def ended(self) -> str:
        """Wait for its end, and return how it ended."""
        code = await self._process.wait()
        if self._killed_for:
            return self._killed_for
        said = self._said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"it has ended with {code}" + (f": {said}" if said else "")

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(READ_BYTES):
            self._said = (self._said + data)[-KEPT_BYTES:]

    async def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._drain(), END_SECONDS)
        self._kill("it was ended")
        await self._drain()
        await self._process.wait()

    async def _drain(self) -> None:
        """Read and drop its remaining output, or its end would not be noticed."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(READ_BYTES):
            pass

    def _kill(self, why: str) -> None:
        if self._process.returncode is None:
            self._killed_for = why
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
