"""Who is silent because others keep the processors busy, and who hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from local.runtime.supervisor import MOST_EXCUSES, CpuStarvation, ProcessorStatus, processor_status

PID = 7
BUSY = "import os; os.sched_setaffinity(0, {%d}); print(flush=True)\nwhile True: pass"


class Process:
    """One of which the tests say how long it has waited."""

    def __init__(self) -> None:
        self.ran, self.waited, self.is_ready = 1.0, 100.0, False

    def status(self, pid: int) -> ProcessorStatus:
        assert pid == PID
        return ProcessorStatus(self.ran, self.waited, self.is_ready)


def seen(process: Process, *times: float) -> CpuStarvation:
    """What was seen of the process at these times."""
    wait = CpuStarvation(process.status)
    for now in times:
        wait.look(PID, now)
    return wait


def test_one_that_waited_for_most_of_its_silence_is_excused_as_often_as_that_is_so() -> None:
    process = Process()
    wait = seen(process, 10.0)
    process.waited += 1.6
    wait.look(PID, 13.0)
    assert wait.excuses(13.0) and wait.is_first_excuse
    process.waited += 1.6
    wait.look(PID, 16.0)
    assert wait.excuses(16.0) and not wait.is_first_excuse
    process.waited += 1.4
    wait.look(PID, 19.0)
    assert not wait.excuses(19.0)


@pytest.mark.parametrize(
    ("is_ready", "ran", "is_excused"),
    [(True, 0.0, True), (True, 0.001, False), (False, 0.0, False)],
    ids=["waits", "has something to do now and then", "is blocked"],
)
def test_a_wait_that_is_not_over_yet_is_seen_before_it_is_counted(is_ready: bool, ran: float, is_excused: bool) -> None:
    process = Process()
    process.is_ready = is_ready
    wait = seen(process, 10.0)
    for now in (11.0, 12.0, 13.0):
        process.ran += ran
        wait.look(PID, now)
    assert wait.excuses(13.0) is is_excused


def test_one_that_only_ever_waits_is_not_excused_for_ever_but_is_again_once_it_has_spoken() -> None:
    process, now = Process(), 10.0
    wait = seen(process, now)
    excused = 0
    while True:
        process.waited, now = process.waited + 3.0, now + 3.0
        wait.look(PID, now)
        if not wait.excuses(now):
            break
        excused += 1
    assert excused == MOST_EXCUSES
    wait.end()
    wait.look(PID, now)
    process.waited += 3.0
    wait.look(PID, now + 3.0)
    assert wait.excuses(now + 3.0) and wait.is_first_excuse


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how long a process has waited")
def test_the_system_says_how_long_a_process_has_waited_for_a_processor() -> None:
    processor = min(os.sched_getaffinity(0))
    command = [sys.executable, "-c", BUSY % processor]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for each in both:
            assert each.stdout is not None and each.stdout.readline()
        before, now = processor_status(both[0].pid), ProcessorStatus()
        end = time.monotonic() + 60.0
        while now.waited_seconds - before.waited_seconds < 0.05:  # each has half of the time that there is
            assert time.monotonic() < end
            time.sleep(0.02)
            now = processor_status(both[0].pid)
        assert now.is_ready and now.ran_seconds > before.ran_seconds
        both[0].send_signal(signal.SIGSTOP)
        while processor_status(both[0].pid).is_ready:
            assert time.monotonic() < end
    finally:
        for each in both:
            each.kill()
            each.communicate()
    assert processor_status(both[0].pid) == ProcessorStatus()  # it has gone
