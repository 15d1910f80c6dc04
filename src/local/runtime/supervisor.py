"""Starts, watches, restarts and stops the participants, each a process of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Self

from local.errors import ConfigError, StartFailed, StartInterrupted, UnknownParticipant
from local.runtime.child import ChildSpec
from local.runtime.child_monitor import ChildMonitor, ChildPhase, ChildState, Watchdog
from local.runtime.lifeline import Lifeline
from local.runtime.logs import release_warnings
from local.runtime.template import Template, prepare_template
from local.tick import until_next_tick

__all__ = ["ChildPhase", "ChildSpec", "ChildState", "Lifeline", "Supervisor", "prepare_template"]

log = logging.getLogger(__name__)

TICKS_PER_HANG = 5
HELD_SECONDS = 10.0  # after the first process: warnings wait so long for an error that keeps the system from starting


class Supervisor:
    """Keeps the children of `specs` alive for as long as its `async with` block lasts.

    `specs` lists children and groups of children in start order: each entry is ready before the next is started, the
    children of a group start side by side. They stop in reverse. A child that dies is started again (`RestartPolicy`),
    one that is silent for `hang_seconds` is killed first, one that does not stop within `stop_seconds` too. `preload`
    names modules that all children share. `on_change` is told of every change, on the supervisor's loop.

    When the supervisor itself is killed, the children end by themselves at once, except those that are stopped
    (SIGSTOP): they end when they are continued.
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
            raise ConfigError(f"two participants are called {min(twice)}; every name can be used once")
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
        self._showing: asyncio.TimerHandle | None = None  # of what warnings are held back

    @property
    def children(self) -> tuple[ChildState, ...]:
        """Every child as it is now, in start order."""
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
        """Show what warnings were held back, here and in the children, and hold none from now on: the start has not
        failed."""
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
        """The end is near: whoever dies from now on is not started again, and no child ends by a SIGTERM of others. For
        the moment of a signal, which may have gone to the children as well."""
        self._is_ending = True
        for monitor in self._monitors.values():
            monitor.wind_down()
        self._wake()

    def add(self, spec: ChildSpec) -> None:
        """Take in one more child, which waits for its `start`, in a process of its own, and stops with those that were
        started last; or have the child of that name begin its next life with this spec."""
        if monitor := self._monitors.get(spec.name):
            monitor.spec = spec
            return
        self._stages[-1] = (*self._stages[-1], spec)
        self._monitors[spec.name] = self._monitor_of(spec)
        self._monitors[spec.name].show_warnings()  # it keeps no system from starting

    async def remove(self, name: str) -> None:
        """Stop a child, which has time for what it has in flight, and know it no longer. Raises UnknownParticipant."""
        await self.stop(name)
        if not self._is_ending:  # else it belongs to those that are stopped now
            child = self._monitors.pop(name).state
            self._stages = [tuple(spec for spec in stage if spec.name != name) for stage in self._stages]
            self._note(child)

    async def start(self, name: str) -> None:
        """Start a child that was added, stopped or given up; returns when it is ready or given up (see `children`).
        Without effect once the end has begun."""
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
            # What the children said meanwhile has been heard: asyncio serves readers before timers.
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
