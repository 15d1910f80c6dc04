"""The world's time for code that asks an event loop for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from simulated.world import Process


class Timer:
    """What an event loop gives for a call that is to come."""

    def __init__(self, when: float) -> None:
        self._when, self._is_cancelled = when, False

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self._is_cancelled = True

    def cancelled(self) -> bool:
        return self._is_cancelled


class Clock:
    """As much of an event loop as timers and futures need. What it is asked to do ends with its process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def time(self) -> float:
        return self._process.world.now

    def call_at(self, when: float, action: Callable[..., object], *args: object) -> Timer:
        timer = Timer(when)
        self._process.later(when - self.time(), self._call, timer, action, args)
        return timer

    def call_later(self, seconds: float, action: Callable[..., object], *args: object) -> Timer:
        return self.call_at(self.time() + seconds, action, *args)

    def call_soon(self, action: Callable[..., object], *args: object, context: object = None) -> Timer:
        return self.call_at(self.time(), action, *args)

    def create_future(self) -> asyncio.Future[Any]:
        loop: Any = self
        return asyncio.Future(loop=loop)

    def get_debug(self) -> bool:
        return False

    def _call(self, timer: Timer, action: Callable[..., object], args: tuple[object, ...]) -> None:
        if not timer.cancelled():
            action(*args)
