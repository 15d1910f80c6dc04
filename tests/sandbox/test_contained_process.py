"""Commands in the sandbox: their limits, their ends, and that nothing of them is left."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from local.core.errors import SandboxRefused, ToolError
from local.sandbox.process import (
    MB,
    CommandOutcome,
    ContainedCommand,
    ContainedProcess,
    EndedBy,
    ProcessTree,
    SandboxLimits,
)
from local.sandbox.sandbox import Bubblewrap, SandboxView

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is of Linux")
SECONDS = 90.0
PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
HELD = "import sys, time; x = bytearray(30_000_000); print(flush=True); time.sleep(99)"


async def begun(workspace: Path, line: str, **limits: float) -> ContainedProcess:
    allowed = SandboxLimits(**{"seconds": SECONDS, "free_bytes": 0, **limits})  # type: ignore[arg-type]
    process = ContainedProcess(workspace, allowed, lambda: None)
    view = SandboxView(workspace, (Path(sys.base_prefix),))
    await process.start(Bubblewrap("bwrap").launch(ContainedCommand(("/bin/bash", "-c", line)), view, allowed))
    return process


async def ended(workspace: Path, line: str, **limits: float) -> tuple[CommandOutcome, str]:
    process = await begun(workspace, line, **limits)
    outcome = await process.wait()
    said = process.output.part(0, -1).decode()
    process.close()
    return outcome, said


@pytest.mark.parametrize(
    ("line", "limits", "by"),
    [
        ("trap '' TERM HUP INT; while :; do sleep 9; done", {"seconds": 0.5}, EndedBy.TIME),
        ("yes", {"output_bytes": 200_000}, EndedBy.OUTPUT),
        ("sleep 9", {"free_bytes": 1 << 60}, EndedBy.DISK),
        ("sleep 9", {"free_files": 1 << 60}, EndedBy.FILES),
        ("cd /tmp; touch $(seq 200); sleep 9", {"scratch_files": 100}, EndedBy.FILES),
        ("cd /dev/shm; mkdir $(seq 200); sleep 9", {"scratch_files": 100}, EndedBy.FILES),
    ],
)  # fmt: skip
async def test_a_command_ends_at_its_limit(tmp_path: Path, line: str, limits: dict[str, float], by: EndedBy) -> None:
    outcome, said = await ended(tmp_path, line, **limits)
    assert (outcome.ended_by, outcome.code) == (by, None), (outcome, said[-500:])
    assert len(said) <= limits.get("output_bytes", 100_000)


async def test_all_processes_of_a_command_share_its_memory(tmp_path: Path) -> None:
    """We end all of them, unless the kernel, where it counts, has ended one of them before."""
    line = f"{PYTHON} -c '{HELD}' & {PYTHON} -c '{HELD}' & wait -n"
    outcome, said = await ended(tmp_path, line, memory_bytes=48 * MB)
    assert outcome.ended_by is EndedBy.MEMORY or outcome.code == 137, (outcome, said)


SHARED = """
import mmap, os
file, size = os.memfd_create("shared"), 40 * 1024 * 1024
os.truncate(file, size)
for mapped in (mmap.mmap(file, size), twice := mmap.mmap(file, size)):
    mapped[::4096] = bytes(size // 4096)
for _ in range(2):
    if os.fork() == 0:
        twice[::4096]
        break
print(flush=True)
os.read(0, 1)
"""


def test_memory_that_processes_share_counts_once_and_one_that_holds_all_of_it_is_seen_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it is mapped. A look at each page of each of a hundred processes takes the kernel seconds."""
    program = subprocess.Popen([sys.executable, "-c", SHARED], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None and program.stdout is not None
    try:
        assert [program.stdout.readline() for _ in range(3)] == [b"\n"] * 3
        tree = ProcessTree(program.pid)
        assert tree.usage(9)[1] > 100 * MB and not tree.hold_more_than(75 * MB)
        monkeypatch.setattr("local.sandbox.process._proportional", lambda pid: 0)
        assert tree.hold_more_than(35 * MB) and not tree.hold_more_than(75 * MB)
    finally:
        program.communicate()  # the end of their input


async def test_a_command_gets_no_more_processes_than_allowed(tmp_path: Path) -> None:
    """By the kernel's count where there is one, else by ours. The number is bounded: for root on a machine without
    control groups nothing but our look at it ends a fork bomb."""
    line = "for i in $(seq 60); do sleep 9 & done; echo all of them"
    outcome, said = await ended(tmp_path, line, processes=20)
    assert outcome.ended_by is EndedBy.PROCESSES or "Resource temporarily unavailable" in said, (outcome, said)


async def test_one_process_gets_no_more_memory_and_no_larger_file_than_allowed(tmp_path: Path) -> None:
    line = f"{PYTHON} -c 'bytearray(400_000_000)'; head -c 3M /dev/zero > big; echo $?; head -c 9M /dev/zero > /tmp/x"
    outcome, said = await ended(tmp_path, line, memory_bytes=300 * MB, file_bytes=2 * MB, scratch_bytes=MB)
    assert outcome.ended_by is EndedBy.ITSELF, outcome
    assert "MemoryError" in said and "153" in said and "No space left on device" in said and outcome.code == 1
    assert (tmp_path / "big").stat().st_size == 2 * MB


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    process = await begun(tmp_path, "(setsid sleep 777 &) ; setsid -f sleep 777; echo begun; read line; echo $?")
    tree = ProcessTree(process._process.pid)
    outcome = await process.wait()
    assert process.output.part(0, 99) == b"begun\n1\n" and outcome.code == 0  # its standard input is empty
    process.close()
    assert tree.members() == [tree.root] and not running("777")


async def test_a_command_that_is_cancelled_ends_at_once(tmp_path: Path) -> None:
    process = await begun(tmp_path, "trap '' TERM; echo begun; sleep 778 & wait")
    waiting = asyncio.create_task(process.wait())
    await asyncio.sleep(0)  # now it waits; a task that is cancelled before never begins to
    await begun_to_sleep("778")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await process._process.wait()
    process.close()
    await gone("778")


async def test_a_command_ends_with_the_process_that_has_begun_it(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
import test_contained_process as here

async def main():
    process = await here.begun(Path({str(tmp_path)!r}), "setsid -f sleep 779; sleep 779")
    await process.wait()

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await begun_to_sleep("779", 2)
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    await gone("779")


def test_a_secret_in_the_environment_is_not_in_the_arguments_that_everybody_sees(tmp_path: Path) -> None:
    command = ContainedCommand(("true",), environment={"API_KEY": "secret-value"})
    with Bubblewrap("bwrap").launch(command, SandboxView(tmp_path), SandboxLimits()) as launch:
        assert "secret-value" not in " ".join(launch.argv)


async def test_a_sandbox_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    view, limits = SandboxView(tmp_path), SandboxLimits()
    process = ContainedProcess(tmp_path, limits, lambda: None)
    await process.start(Bubblewrap("bwrap").launch(ContainedCommand(("true",), "nowhere"), view, limits))
    with pytest.raises(ToolError, match="nowhere"):
        await process.wait()
    process.close()


def test_no_command_is_given_what_is_private(tmp_path: Path) -> None:
    def at(name: str) -> Path:
        return Path(name).expanduser() if name[0] in "/~" else tmp_path / name

    for folder in ("data/keys", "data/workspace", "work"):
        (tmp_path / folder).mkdir(parents=True)
    refused: list[tuple[str, tuple[str, ...], str]] = [
        *[("/", (), "holds"), ("~", (), "holds"), ("/usr/share", (), "part of the system"), ("/etc", (), "part of")],
        *[("data/..", (), "holds .*data"), ("work", ("data/keys",), "private to LoCAL2"), ("work", ("/",), "holds")],
    ]
    for workspace, readable, says in refused:
        with pytest.raises(SandboxRefused, match=says):
            SandboxView(at(workspace), tuple(map(at, readable)), (tmp_path / "data",))
    SandboxView(tmp_path / "data/workspace", (tmp_path / "work",), (tmp_path / "data",))


def test_an_exit_code_is_explained() -> None:
    for argv, code, says in (
        (["grep", "x"], 1, "nothing was found"),
        (["x"], 127, "not found"),
        (["timeout", "1", "x"], 124, "time limit"),
        (["x"], 137, "SIGKILL, it was killed, mostly for want of memory"),
        (["x"], 130, "SIGINT"),
    ):
        line = CommandOutcome(EndedBy.ITSELF, code, 1.25).explained(argv, SandboxLimits())
        assert line.startswith(f"exit code {code} after 1.2 s: ") and says in line
    assert CommandOutcome(EndedBy.ITSELF, 1, 0.0).explained(["make"], SandboxLimits()) == "exit code 1 after 0.0 s"


def running(argument: str) -> list[int]:
    """The processes that sleep for so long."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().split(b"\0")[:2] == [b"sleep", argument.encode()]:
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


async def begun_to_sleep(argument: str, count: int = 1) -> None:
    until = time.monotonic() + SECONDS
    while len(running(argument)) < count:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


async def gone(argument: str) -> None:
    until = time.monotonic() + SECONDS
    while running(argument):
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
