"""A whole program with a supervisor in it: what it leaves behind, and what it prints."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

TARGETS = Path(__file__).parent / "targets"
PATIENCE = 90.0

PROGRAM = """
print("main", flush=True)
import asyncio, sys
from local.runtime.supervisor import ChildSpec, Supervisor
sys.path.insert(0, sys.argv[1])

async def run():
    specs = [ChildSpec(name, "tool", "supervised:" + name, required=False) for name in sys.argv[2:]]
    async with Supervisor([tuple(specs)], preload=["wave"]) as supervisor:
        print(*(child.pid for child in supervisor.children), flush=True)
        await supervisor.wait_until(lambda children: all(child.state == "failed" for child in children))

asyncio.run(run())
"""

FAILING = """
import asyncio, sys
from contextlib import suppress
from local.core.errors import StartFailed
from local.runtime.logs import configure_logging, hold_warnings
from local.runtime.supervisor import ChildSpec, Supervisor
sys.path.insert(0, sys.argv[1])
from local.runtime.template import fork_template
fork_template()
configure_logging("supervisor", "info")
hold_warnings()

async def run():
    warning, *others = [ChildSpec(name, "tool", "supervised:" + name) for name in sys.argv[2:]]
    with suppress(StartFailed):
        async with Supervisor([warning, others]) as supervisor:
            supervisor.show_warnings()
            print("started", file=sys.stderr, flush=True)
            await supervisor.restart("warn")
            supervisor.add(ChildSpec("late", "tool", "supervised:warn"))
            await supervisor.start("late")
            sys.stdin.read()

asyncio.run(run())
"""


def wait_gone(processes: list[psutil.Process]) -> None:
    """Wait until none of them runs; one whose adoptive parent does not collect its dead stays on as a zombie."""
    deadline = time.monotonic() + PATIENCE
    while processes:
        assert time.monotonic() < deadline, f"still running: {processes}"
        _, alive = psutil.wait_procs(processes, timeout=0.1)
        processes = [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A script without a main guard: whoever imports it runs it."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return script


def test_nobody_is_left_when_the_supervisor_is_killed(program: Path) -> None:
    command = [sys.executable, str(program), str(TARGETS), "serve", "ready_then_mute", "refuse_to_stop"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "main\n"
        children = {int(pid) for pid in supervisor.stdout.readline().split()}
        family = psutil.Process(supervisor.pid).children(recursive=True)
        assert len(children) == 3
        assert children < {process.pid for process in family}
        supervisor.kill()

    wait_gone(family)


def test_a_failure_in_a_child_is_one_line_and_the_main_script_is_run_once(program: Path) -> None:
    command = [
        sys.executable,
        str(program),
        str(TARGETS),
        "misconfigured",
        "fail_by_name",
        "tell_whether_wave_is_there",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)

    assert ended.stdout.count("main") == 1
    assert "Traceback" not in ended.stderr
    lines = [line.split(" ", 1)[1] for line in ended.stderr.splitlines() if " error " in line]
    assert lines.count("error misconfigured - colour: 'bleu' is not a colour; did you mean 'blue'?") == 1
    assert lines.count("error fail_by_name - the well is dry") == 5
    assert "error tell_whether_wave_is_there - True" in lines, "the template imports what children share"


def test_the_error_that_ends_a_start_comes_before_every_warning(tmp_path: Path) -> None:
    """Also before that of a child that was ready long before."""
    command = [sys.executable, "-c", FAILING, str(TARGETS), "warn", "exit_at_once", "misconfigured"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)

    levels = [line.split(" ")[1] for line in ended.stderr.splitlines()]
    assert levels == sorted(levels)  # "error" before "warning"
    assert {"error", "warning"} == set(levels)
    assert ended.stderr.count("warning warn - the well is low") == 1


def test_once_a_start_has_not_failed_warnings_are_shown_as_they_come() -> None:
    command = [sys.executable, "-c", FAILING, str(TARGETS), "warn"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stderr is not None
        said = [supervisor.stderr.readline() for _ in range(4)]  # while it runs: it ends with its input
        assert sum("warning warn - the well is low" in line for line in said) == 2
        assert sum("warning late - the well is low" in line for line in said) == 1
        supervisor.communicate(timeout=PATIENCE)
