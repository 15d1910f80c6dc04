"""Keeps one child alive: starts it, waits for its end or for too long a silence, and starts it again."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from local.runtime.child import ChildSpec
from local.runtime.child_process import ChildProcess, describe_end
from local.runtime.lifeline import EXIT_CONFIG
from local.runtime.processor_wait import ProcessorWait
from local.runtime.restart_policy import RestartPolicy
from local.runtime.template import Template

log = logging.getLogger(__name__)

LATE_TICKS = 2.0
TERMINATED_TO_DEATH = describe_end(-signal.SIGTERM)
GROUP_SIGNAL_SECONDS = 0.25  # within it a signal to everybody has reached everybody


class ChildPhase(StrEnum):
    """What a child is doing, as the supervisor knows it."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ChildState:
    """One child at one moment. `detail` tells of its last death; `since`, and `retry_at` of one that is given up and
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
    why: str = ""  # what the child itself said last
    lived: float | None = None
    is_hopeless: bool = False  # starting it again at once cannot help

    @property
    def detail(self) -> str:
        return f"{self.how}: {self.why}" if self.why else self.how


class Watchdog:
    """Holds a deadline for each watched name. All times are seconds of one monotonic clock that the caller reads.

    `overdue` is to be called every `tick_seconds`. When it is called much later than that, the watcher itself was held
    up (a suspended laptop, a stopped or starved process): it heard nobody, so nobody is blamed and all deadlines start
    again.
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

    def heard(self, name: str, now: float) -> None:
        """A sign of life of a watched name; of any other it means nothing."""
        if name in self._allowed:
            self._deadlines[name] = now + self._allowed[name]

    def excuse(self, name: str, now: float) -> None:
        """Expect the next sign of life of a watched name within half of its time from now."""
        self._deadlines[name] = now + self._allowed[name] / 2

    def silent(self, now: float) -> tuple[str, ...]:
        """The names of which half of the time for a sign of life has gone by."""
        return tuple(name for name, at in self._deadlines.items() if now >= at - self._allowed[name] / 2)

    def forget(self, name: str) -> None:
        """Expect nothing more of `name`."""
        self._allowed.pop(name, None)
        self._deadlines.pop(name, None)

    def overdue(self, now: float) -> tuple[str, ...]:
        """The names whose deadline has passed; none if this call comes late."""
        late = now - self._last_tick > LATE_TICKS * self._tick
        self._last_tick = now
        if late:
            for name in self._allowed:
                self.heard(name, now)
        return tuple(name for name, deadline in self._deadlines.items() if now >= deadline)


class ChildMonitor:
    """Owns the processes of one child, one after the other. `changed` is called after each change of `state`."""

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
        self._fault = ""
        self._wait = ProcessorWait()

    @property
    def settled(self) -> bool:
        """Whether the child has arrived somewhere: nothing changes now unless it dies or is told to."""
        return self.state.state in (ChildPhase.READY, ChildPhase.FAILED, ChildPhase.STOPPED)

    @property
    def had_its_try(self) -> bool:
        """Whether the start of the system goes on without this child, which is started again meanwhile."""
        return not self.spec.required and self.state.restarts > 0

    def start(self) -> None:
        """Begin to keep the child alive, with a clean record, or try at once one that is given up; without effect while
        it is kept."""
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
        """Look what the child waits for: a sign of life has not come for half of its time."""
        if self._child is not None:
            self._wait.look(self._child.pid, self._now())

    def overdue(self) -> None:
        """Kill the child: no sign of life came in time, though it could have been given."""
        if self._wait.excuses(self._now()):
            if self._wait.is_first_excuse:
                log.warning("%s is silent because others keep the processors busy: it is given time", self.spec.name)
            self._watchdog.excuse(self.spec.name, self._now())
            return
        silent = f"{self._now() - self._heard_at:.1f} s"
        self._fault = f"not ready after {silent}" if self._ready_at is None else f"silent for {silent}"
        self._kill()

    async def _keep(self) -> None:
        while True:
            death = await self._live()
            if death.how == TERMINATED_TO_DEATH:  # before it could pass that on: it may have been sent to everybody
                await self._sleep(GROUP_SIGNAL_SECONDS)
            if not self._is_stopping:
                await self._pause(death)
            if self._is_stopping:
                return self._set(ChildPhase.STOPPED, pid=None, retry_at=None)
            if self.state.state is not ChildPhase.STARTING:  # else it was started by hand
                again = ChildPhase.FAILED if self._policy.has_given_up else ChildPhase.STARTING
                self._set(again, restarts=self.state.restarts + 1, retry_at=None)

    async def _pause(self, death: _Death) -> None:
        """Wait until it is time for the next start, or somebody wants the child to start or to stop."""
        seconds = self._policy.died(death.lived, is_hopeless=death.is_hopeless)
        when = f"in {seconds:g} s" if seconds else "at once"
        if self._policy.has_given_up:
            if not death.is_hopeless:  # else it has said itself what is wrong
                told = "%s is given up (%s) and tried again %s; everything else keeps running"
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
        """One life of the child, from its start to its end."""
        self._ready_at, self._fault = None, ""
        self._wait.end()
        try:
            self._child = child = await self._template.start(
                self.spec, self._on_ready, self._on_beat, self._on_terminated
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps a child from starting counts as its death
            return _Death(f"cannot start a process: {error}")
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
            self._set(ChildPhase.READY)

    def _on_beat(self) -> None:
        self._wait.end()
        self._heard_at = self._now()
        self._watchdog.heard(self.spec.name, self._heard_at)

    def _on_terminated(self) -> None:
        """Somebody has sent the child SIGTERM: it may follow, unless the same has been sent to us.

        Then its turn comes in the order in which everybody is stopped.
        """
        asyncio.get_running_loop().call_later(GROUP_SIGNAL_SECONDS, self._let_go, self._child)

    def _let_go(self, child: ChildProcess | None) -> None:
        if child is not None and not self._is_stopping:
            child.ask_to_stop()

    def _terminate(self) -> None:
        self._watchdog.forget(self.spec.name)  # the time to stop is its own limit
        self._set(ChildPhase.STOPPING)
        if self._child is not None:
            self._child.ask_to_stop()

    def _kill(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)

    def _set(self, state: ChildPhase, **changes: Any) -> None:
        self.state = replace(self.state, state=state, since=self._now(), **changes)
        self._changed(self.state)
