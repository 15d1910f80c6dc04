"""The supervisor: starts, watches, restarts and stops the child processes.

Problem: participants crash, hang, and are killed, and the user must not notice more than a pause. The supervisor must
tell a process that hangs from one that is starved of processor time by others, and must not make things worse by
starting a broken process again and again.

Idea, from Erlang's supervisors: let it crash, and start it again with a clean state; everything that must survive is on
disk. Each child has a lifeline, a socket pair. Its closing is the child's death, and bytes on it are signs of life. One
`ChildMonitor` keeps one child alive, `RestartPolicy` says when it is started again, `Watchdog` who has been silent for
too long, `CpuStarvation` whether the silence is excused. The last three are plain code with the clock passed in.

Invariants: no child outlives the supervisor, because each ends when its lifeline closes. A stage is started only when
the stage before it is ready, and stages stop in reverse. A child that is given up is tried again every 5 to 30 seconds,
and never keeps the rest from serving. A death after the end has begun is part of that end. A supervisor that was itself
held up (a suspended laptop) blames nobody.

Rejected: signs of life over the bus (a hung proxy would make every process look dead), the process sentinel of
multiprocessing (it fires for all children when the template dies), one process group signal at the end (the journal has
to outlive those whose last messages it stores).
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from local.core.errors import ConfigError, StartFailed, StartInterrupted, UnknownParticipant
from local.core.files import Backoff, until_next_tick
from local.runtime.child import EXIT_CONFIG, ChildProcess, ChildSpec, Lifeline, describe_end
from local.runtime.logs import release_warnings
from local.runtime.template import Template

# Tells a process that hangs from one that is kept waiting for a processor, because others are busy.

NANOSECOND = 1e-9
MOST_OF_IT = 0.5  # of a silence
MOST_EXCUSES = 10  # of one silence, so that a process that hangs on a busy machine is detected all the same


@dataclass(frozen=True, slots=True)
class ProcessorStatus:
    """The processor time of all threads of a process: the seconds in which they ran, the seconds in which they were
    ready and waited for a processor (counted when a wait is over), and whether one is ready now.
    """

    ran_seconds: float = 0.0
    waited_seconds: float = 0.0
    is_ready: bool = False


def processor_status(pid: int) -> ProcessorStatus:
    """Return the processor status of a process; empty where the system does not report it, as on macOS. The numbers
    are the first and second of Linux' `schedstat`, the state is that in its `stat`.
    """
    ran, waited, is_ready = 0, 0, False
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended, or the format is unknown
            run, wait, _ = (thread / "schedstat").read_text().split()
            ran, waited = ran + int(run), waited + int(wait)
            is_ready |= (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    return ProcessorStatus(ran * NANOSECOND, waited * NANOSECOND, is_ready)


class CpuStarvation:
    """The observation of one silent process: is it starved of processor time, or does it hang? Times are seconds of
    one monotonic clock.
    """

    def __init__(self, status_of: Callable[[int], ProcessorStatus] = processor_status) -> None:
        self._status_of = status_of
        self._begun: tuple[float, ProcessorStatus] | None = None  # when that was, and how the process was then
        self._latest = ProcessorStatus()
        self._ran_at = 0.0  # the first time that it was seen to have run for as long as it has
        self._excuses = 0

    def look(self, pid: int, now: float) -> None:
        """To be called now and then while the process is silent."""
        status = self._status_of(pid)
        if self._begun is None or status.ran_seconds != self._latest.ran_seconds:
            self._ran_at = now
        self._begun, self._latest = self._begun or (now, status), status

    def end(self) -> None:
        """Forget the silence: the process has sent a sign of life, or has ended."""
        self._begun, self._excuses = None, 0

    def excuses(self, now: float) -> bool:
        """Whether the process has spent most of the time until the latest look waiting for a processor; the count then
        starts again. At most ten times in one silence."""
        if self._begun is None or self._excuses >= MOST_EXCUSES:
            return False
        since, before = self._begun
        waited = self._latest.waited_seconds - before.waited_seconds
        if self._latest.is_ready:
            waited += now - self._ran_at
        if waited < MOST_OF_IT * (now - since):
            return False
        self._excuses += 1
        self._begun = now, self._latest
        return True

    @property
    def is_first_excuse(self) -> bool:
        """Whether the last excuse was the first one of this silence."""
        return self._excuses == 1


# When a child that has died is started again.

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0
EARLY_SECONDS = 3.0
MOST_EARLY_DEATHS = 5
FIRST_RETRY, LONGEST_RETRY = 5.0, 30.0  # of a child that is given up


class RestartPolicy:
    """The restart policy of one child: when it is started again, and when it is given up.

    It counts consecutive early deaths: those before the child was ready, or within `EARLY_SECONDS` of that. A child
    that lived longer starts with a clean record. This is the restart intensity of OTP supervisors, for one child.
    """

    def __init__(self, most_early_deaths: int = MOST_EARLY_DEATHS) -> None:
        self._most = most_early_deaths
        self.reset()

    @property
    def has_given_up(self) -> bool:
        """Whether the child died too often: it is still tried again, but the start of the system does not
        wait for it."""
        return self._early_deaths >= self._most

    def reset(self) -> None:
        """Start again with a clean record."""
        self._early_deaths = 0
        self._backoff = Backoff(FIRST_WAIT, LONGEST_WAIT)
        self._retries = Backoff(FIRST_RETRY, LONGEST_RETRY)

    def died(self, lived: float | None, *, is_hopeless: bool = False) -> float:
        """Return the seconds to wait before the next start: none at first, then 0.1 s doubling up to 5 s; once the
        child is given up 5 s doubling up to 30 s. A hopeless death gives it up at once: only a person can repair that,
        and soon sees whether it helped.

        `lived` is the time from ready to death in seconds, None for a child that never became ready.
        """
        if is_hopeless:
            self._early_deaths = self._most
            return self._retries.next()
        if lived is not None and lived > EARLY_SECONDS:
            self.reset()
            return 0.0
        self._early_deaths += 1
        if self.has_given_up:
            return self._retries.next()
        return 0.0 if self._early_deaths == 1 else self._backoff.next()


# Keeps one child alive: starts it, waits for its end or for too long a silence, and starts it again.

log = logging.getLogger(__name__)

LATE_TICKS = 2.0
TERMINATED_TO_DEATH = describe_end(-signal.SIGTERM)
GROUP_SIGNAL_SECONDS = 0.25  # within it a signal to the process group has reached all processes


class ChildPhase(StrEnum):
    """The state of a child, as the supervisor knows it."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ChildState:
    """A snapshot of one child. `detail` describes its last death; `since`, and `retry_at` of one that is given up and
    waits for its next try, are the loop's clock in seconds."""

    name: str
    kind: str
    pid: int | None
    state: ChildPhase
    restarts: int
    detail: str
    since: float
    retry_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Death:
    how: str
    why: str = ""  # the child's own latest message
    lived: float | None = None
    is_hopeless: bool = False  # starting it again at once cannot help

    @property
    def detail(self) -> str:
        return f"{self.how}: {self.why}" if self.why else self.how


class Watchdog:
    """A deadline for each watched name. All times are seconds of one monotonic clock that the caller reads.

    `overdue` is called every `tick_seconds`. When it is called much later than that, the watcher itself was held up (a
    suspended laptop, a stopped or starved process): it received nothing, so all deadlines start again.
    """

    def __init__(self, tick_seconds: float, now: float) -> None:
        self._tick = tick_seconds
        self._last_tick = now
        self._allowed: dict[str, float] = {}
        self._deadlines: dict[str, float] = {}

    def watch(self, name: str, seconds: float, now: float) -> None:
        """Expect a sign of life of `name` within `seconds`, and again after each one. Replaces an earlier watch."""
        self._allowed[name] = seconds
        self._deadlines[name] = now + seconds

    def beat(self, name: str, now: float) -> None:
        """Record a sign of life of a watched name; other names are ignored."""
        if name in self._allowed:
            self._deadlines[name] = now + self._allowed[name]

    def excuse(self, name: str, now: float) -> None:
        """Expect the next sign of life of a watched name within half of its time from now."""
        self._deadlines[name] = now + self._allowed[name] / 2

    def silent(self, now: float) -> tuple[str, ...]:
        """Return the names whose sign of life is overdue for half of the permitted time."""
        return tuple(name for name, at in self._deadlines.items() if now >= at - self._allowed[name] / 2)

    def forget(self, name: str) -> None:
        """Expect nothing more of `name`."""
        self._allowed.pop(name, None)
        self._deadlines.pop(name, None)

    def overdue(self, now: float) -> tuple[str, ...]:
        """Return the names whose deadline has passed; none if this call comes late."""
        late = now - self._last_tick > LATE_TICKS * self._tick
        self._last_tick = now
        if late:
            for name in self._allowed:
                self.beat(name, now)
        return tuple(name for name, deadline in self._deadlines.items() if now >= deadline)


class ChildMonitor:
    """The manager of one child: it starts the child's processes, one after the other. `changed` is called after each
    change of `state`.
    """

    def __init__(
        self,
        spec: ChildSpec,
        template: Template,
        watchdog: Watchdog,
        hang_seconds: float,
        changed: Callable[[ChildState], None],
    ) -> None:
        self.spec = spec
        self._template, self._watchdog = template, watchdog
        self._hang_seconds = hang_seconds
        self._changed = changed
        self._now = asyncio.get_running_loop().time
        self.state = ChildState(spec.name, spec.kind, None, ChildPhase.STOPPED, 0, "", self._now())
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = self._holds_no_warnings = False
        self._woken = asyncio.Event()  # from a pause
        self._policy = RestartPolicy()
        self._child: ChildProcess | None = None
        self._ready_at: float | None = None
        self._fault, self._last_death = "", ""
        self._troubled_at = -math.inf  # when the child last reported what keeps it from becoming ready
        self._wait = CpuStarvation()

    @property
    def settled(self) -> bool:
        """Whether the child is in a stable state, which only its death or a request changes."""
        return self.state.state in (ChildPhase.READY, ChildPhase.FAILED, ChildPhase.STOPPED)

    @property
    def had_its_try(self) -> bool:
        """Whether the start of the system continues without this child, which is started again in the background."""
        return not self.spec.required and self.state.restarts > 0

    def start(self) -> None:
        """Begin to keep the child alive, with a clean record, or at once retry one that is given up; without effect
        while it is kept.
        """
        if self._task is None or self._task.done():
            self._is_stopping = False
            self._task = asyncio.create_task(self._keep(), name=f"keep {self.spec.name}")
        elif self.state.state is not ChildPhase.FAILED:
            return
        self._policy.reset()
        self._set(ChildPhase.STARTING, restarts=0, retry_at=None)
        self._woken.set()

    def show_warnings(self) -> None:
        """From now on its warnings are shown at once."""
        self._holds_no_warnings = True
        if self._child is not None:
            self._child.show_warnings()

    def wind_down(self) -> None:
        """Take a death from now on for a part of the end."""
        self._is_stopping = True
        self._woken.set()

    async def stop(self, seconds: float) -> None:
        """Ask the child to stop, kill it after `seconds`; returns when it has ended, not to start again."""
        if self._task is None or self._task.done():
            return
        self.wind_down()
        self._terminate()
        await asyncio.wait([self._task], timeout=seconds)
        if not self._task.done():
            log.warning("%s did not stop within %g s and is killed", self.spec.name, seconds)
            self._kill()
        await self._task

    def abandon(self) -> None:
        """Kill the child without waiting for anything: the way out when `stop` itself was cut short."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
        if self._child is not None:
            self._child.abandon()

    def silent(self) -> None:
        """Check the processor time of a child whose sign of life is overdue for half of the permitted time."""
        if self._child is not None:
            self._wait.look(self._child.pid, self._now())

    def overdue(self) -> None:
        """Kill the child: no sign of life came in time, though it could have been given."""
        if self._wait.excuses(self._now()):
            if self._wait.is_first_excuse:
                log.warning(
                    "%s is silent because other processes keep the processors busy: its deadline is extended",
                    self.spec.name,
                )
            self._watchdog.excuse(self.spec.name, self._now())
            return
        if self._ready_at is None and self._waits_for_something:
            self._watchdog.watch(self.spec.name, self.spec.ready_seconds, self._now())
            return
        silent = f"{self._now() - self._heard_at:.1f} s"
        self._fault = f"not ready after {silent}" if self._ready_at is None else f"silent for {silent}"
        self._kill()

    @property
    def _waits_for_something(self) -> bool:
        """Whether a restarted child has just reported what it waits for, such as a read-only disk: killing it would not
        help. The first start counts as a try, so that the start of the system goes on.
        """
        return self.state.restarts > 0 and self._now() - self._troubled_at < self.spec.ready_seconds / 2

    async def _keep(self) -> None:
        while True:
            death = await self._live()
            if death.how == TERMINATED_TO_DEATH:  # before it could report a signal to all processes
                await self._sleep(GROUP_SIGNAL_SECONDS)
            if not self._is_stopping:
                await self._pause(death)
            if self._is_stopping:
                return self._set(ChildPhase.STOPPED, pid=None, retry_at=None)
            if self.state.state is not ChildPhase.STARTING:  # else it was started by hand
                again = ChildPhase.FAILED if self._policy.has_given_up else ChildPhase.STARTING
                self._set(again, restarts=self.state.restarts + 1, retry_at=None)

    async def _pause(self, death: _Death) -> None:
        """Wait until it is time for the next start, or the child is asked to start or to stop."""
        self._last_death = death.detail
        seconds = self._policy.died(death.lived, is_hopeless=death.is_hopeless)
        when = f"in {seconds:g} s" if seconds else "at once"
        if self._policy.has_given_up:
            if not death.is_hopeless:  # otherwise it has reported the error itself
                told = "%s failed too often (%s) and is tried again %s; everything else keeps running"
                log.error(told, self.spec.name, death.how, when)
            self._set(ChildPhase.FAILED, pid=None, detail=death.detail, retry_at=self._now() + seconds)
        else:
            log.warning("%s died (%s) and is started again %s", self.spec.name, death.how, when)
            self._set(ChildPhase.RESTARTING, pid=None, detail=death.detail)
        await self._sleep(seconds)

    async def _sleep(self, seconds: float) -> None:
        if not self._is_stopping:
            self._woken.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), seconds)

    async def _live(self) -> _Death:
        """Run one life of the child, from its start to its end."""
        self._ready_at, self._fault = None, ""
        self._wait.end()
        try:
            self._child = child = await self._template.start(
                self.spec, self._on_ready, self._on_beat, self._on_terminated
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps a child from starting counts as its death
            return _Death(f"cannot start a process: {error}")
        child.on_trouble = self._on_trouble
        if self._holds_no_warnings:
            child.show_warnings()
        self._heard_at = self._now()  # the start, or the latest sign of life
        self._watchdog.watch(self.spec.name, self.spec.ready_seconds, self._heard_at)
        self._set(self.state.state, pid=child.pid)
        if self._is_stopping:
            self._terminate()
        await child.gone.wait()
        lived = None if self._ready_at is None else self._now() - self._ready_at
        self._watchdog.forget(self.spec.name)
        self._child = None
        status = await self._template.reap(child)
        how = self._fault or describe_end(status)
        return _Death(how, child.last_words, lived, is_hopeless=status == EXIT_CONFIG)

    def _on_ready(self) -> None:
        if not self._is_stopping:
            self._wait.end()
            self._ready_at = self._heard_at = self._now()
            self._watchdog.watch(self.spec.name, self._hang_seconds, self._ready_at)
            self._set(ChildPhase.READY, detail=self._last_death)

    def _on_trouble(self) -> None:
        self._troubled_at = self._now()
        if self._child is not None and self._ready_at is None and self.state.state is ChildPhase.STARTING:
            self.state = replace(self.state, detail=self._child.last_words)
            self._changed(self.state)

    def _on_beat(self) -> None:
        self._wait.end()
        self._heard_at = self._now()
        self._watchdog.beat(self.spec.name, self._heard_at)

    def _on_terminated(self) -> None:
        """Handle a SIGTERM that another process sent to the child: the child may stop, unless this process got one as
        well.

        In that case the child is stopped in the usual order.
        """
        asyncio.get_running_loop().call_later(GROUP_SIGNAL_SECONDS, self._let_go, self._child)

    def _let_go(self, child: ChildProcess | None) -> None:
        if child is not None and not self._is_stopping:
            child.ask_to_stop()

    def _terminate(self) -> None:
        self._watchdog.forget(self.spec.name)  # the time to stop has its own limit
        self._set(ChildPhase.STOPPING)
        if self._child is not None:
            self._child.ask_to_stop()

    def _kill(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)

    def _set(self, state: ChildPhase, **changes: Any) -> None:
        self.state = replace(self.state, state=state, since=self._now(), **changes)
        self._changed(self.state)


__all__ = ["ChildPhase", "ChildSpec", "ChildState", "Lifeline", "Supervisor"]


TICKS_PER_HANG = 5
HELD_SECONDS = 10.0  # after the first process: warnings wait so long for an error that keeps the system from starting


class Supervisor:
    """A supervisor of child processes: it keeps the children of `specs` alive while its `async with` block lasts.

    `specs` lists children and groups of children in start order: each entry is ready before the next is started, the
    children of a group start side by side. They stop in reverse. A child that dies is started again (`RestartPolicy`),
    one that is silent for `hang_seconds` is killed first, one that does not stop within `stop_seconds` too. `preload`
    names modules that all children share. `on_change` is called for every change, on the supervisor's loop.

    When the supervisor itself is killed, the children end immediately, except those that are stopped (SIGSTOP): they
    end when they are continued.
    """

    def __init__(
        self,
        specs: Sequence[ChildSpec | Sequence[ChildSpec]],
        *,
        hang_seconds: float = 5.0,
        stop_seconds: float = 10.0,
        preload: Sequence[str] = (),
        on_change: Callable[[ChildState], None] | None = None,
    ) -> None:
        self._stages = [(entry,) if isinstance(entry, ChildSpec) else tuple(entry) for entry in specs]
        names = [spec.name for stage in self._stages for spec in stage]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ConfigError(f"two participants are called {min(twice)}; names must be unique")
        self._hang_seconds, self._stop_seconds = hang_seconds, stop_seconds
        self._on_change = on_change
        self._template = Template(preload, hang_seconds)
        for stage in self._stages:
            for process in {spec.shared_process for spec in stage if spec.shared_process}:
                self._template.share([spec for spec in stage if spec.shared_process == process])
        self._monitors: dict[str, ChildMonitor] = {}
        self._watchdog: Watchdog
        self._changed = asyncio.Event()
        self._is_ending = False
        self._showing: asyncio.TimerHandle | None = None  # for warnings that are held back

    @property
    def children(self) -> tuple[ChildState, ...]:
        """Return the current state of every child, in start order."""
        return tuple(monitor.state for monitor in self._monitors.values())

    async def __aenter__(self) -> Self:
        """Start everything. Raises, with nothing left running, StartFailed if a required child is given up, which is
        logged, and StartInterrupted after `wind_down`. Until `show_warnings`, and for 10 s at most once there is a
        process, only errors are shown on the terminal."""
        tick = self._hang_seconds / TICKS_PER_HANG
        self._watchdog = Watchdog(tick, asyncio.get_running_loop().time())
        for spec in (spec for stage in self._stages for spec in stage):
            self._monitors[spec.name] = self._monitor_of(spec)
        self._watching = asyncio.create_task(self._watch(self._watchdog, tick), name="watchdog")
        try:
            for stage in self._stages:
                await self._start_stage([self._monitors[spec.name] for spec in stage])
        except BaseException as error:
            if isinstance(error, StartFailed):
                log.error("%s", error)  # before the warnings of those that are stopped now
            await self._shut_down()
            raise
        return self

    def show_warnings(self) -> None:
        """Show the held warnings, here and in the children, and hold none from now on: the start has not failed."""
        release_warnings()
        for monitor in self._monitors.values():
            monitor.show_warnings()

    async def __aexit__(self, *error: object) -> None:
        """Stop everything; no child is left when this returns."""
        await self._shut_down()

    async def wait_until(self, true: Callable[[tuple[ChildState, ...]], bool]) -> None:
        """Wait until `true(children)`; looks after each change, so a state that lasts no time can go unseen."""
        while not true(self.children):
            await self._changed.wait()

    def wind_down(self) -> None:
        """Prepare the shutdown: children that die from now on are not started again, and no child ends by a SIGTERM of
        others. Call it when a signal arrives, because the children may have received it as well.
        """
        self._is_ending = True
        for monitor in self._monitors.values():
            monitor.wind_down()
        self._wake()

    def add(self, spec: ChildSpec) -> None:
        """Add a child that waits for its `start`, runs in a separate process, and stops with those that were started
        last; or give an existing child of that name this spec for its next start.
        """
        if monitor := self._monitors.get(spec.name):
            monitor.spec = spec
            return
        self._stages[-1] = (*self._stages[-1], spec)
        self._monitors[spec.name] = self._monitor_of(spec)
        self._monitors[spec.name].show_warnings()  # it keeps no system from starting

    async def remove(self, name: str) -> None:
        """Stop a child, after its work in flight, and remove it. Raises UnknownParticipant."""
        await self.stop(name)
        if not self._is_ending:  # else it belongs to those that are stopped now
            child = self._monitors.pop(name).state
            self._stages = [tuple(spec for spec in stage if spec.name != name) for stage in self._stages]
            self._note(child)

    async def start(self, name: str) -> None:
        """Start a child that was added, stopped or given up; returns when it is ready or given up (see `children`).
        Without effect once the end has begun.
        """
        monitor = self._monitor(name)
        if self._is_ending:
            return
        monitor.start()
        await self.wait_until(lambda _: monitor.settled)

    async def stop(self, name: str) -> None:
        """Stop a child and leave it stopped. Raises UnknownParticipant, like `start` and `restart`."""
        await self._monitor(name).stop(self._stop_seconds)

    async def restart(self, name: str) -> None:
        """Stop a child and start it again with a clean record."""
        await self.stop(name)
        await self.start(name)

    def _monitor(self, name: str) -> ChildMonitor:
        if name not in self._monitors:
            raise UnknownParticipant(name, self._monitors)
        return self._monitors[name]

    def _monitor_of(self, spec: ChildSpec) -> ChildMonitor:
        return ChildMonitor(spec, self._template, self._watchdog, self._hang_seconds, self._note)

    async def _start_stage(self, monitors: Sequence[ChildMonitor]) -> None:
        for monitor in monitors if not self._is_ending else ():
            monitor.start()
        await self.wait_until(lambda _: self._is_ending or all(each.settled or each.had_its_try for each in monitors))
        if self._is_ending:
            raise StartInterrupted
        for monitor in monitors:
            if monitor.spec.required and monitor.state.state is ChildPhase.FAILED:
                raise StartFailed(monitor.spec.name, monitor.state.detail)

    async def _watch(self, watchdog: Watchdog, tick: float) -> None:
        while True:
            await asyncio.sleep(until_next_tick(asyncio.get_running_loop().time(), tick))
            # Messages that the children sent meanwhile have been received: asyncio serves readers before timers.
            now = asyncio.get_running_loop().time()
            overdue = watchdog.overdue(now)
            for name in watchdog.silent(now):
                self._monitors[name].silent()
            for name in overdue:
                self._monitors[name].overdue()

    async def _shut_down(self) -> None:
        self._is_ending = True
        try:
            for stage in reversed(self._stages):
                for outlives in (False, True):
                    ending = [self._monitors[spec.name] for spec in stage if spec.outlives is outlives]
                    await asyncio.gather(*(monitor.stop(self._stop_seconds) for monitor in ending))
        finally:
            for monitor in self._monitors.values():
                monitor.abandon()
            self._watching.cancel()
            await asyncio.wait([self._watching])
            self._template.close()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _note(self, child: ChildState) -> None:
        self._wake()
        if child.pid is not None and self._showing is None:
            self._showing = asyncio.get_running_loop().call_later(HELD_SECONDS, self.show_warnings)
        if self._on_change is None:
            return
        try:
            self._on_change(child)
        except Exception as error:  # a faulty listener must not end the supervision
            log.error("on_change: %s: %s", type(error).__name__, error, exc_info=log.isEnabledFor(logging.DEBUG))
