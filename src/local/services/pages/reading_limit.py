"""The limits of reading a page: a count of work, which is the same on every machine, and a wide limit of time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

T = TypeVar("T")

MOST_STEPS = 200_000_000
"""The steps after which a page counts as too complicated. A step is a character that is looked at once more; pages that
people write take fewer than ten for each of their characters."""
SECONDS_FACTOR = 4.0
"""A reading may last this many times the seconds of its setting: enough for a slow machine that is busy, too."""
_STEPS_OF_AN_ELEMENT = 20  # what finding an element's text takes, however short it is


class TooMuchWork(Exception):
    """A page takes more steps than a reading may take, or its reader waits no longer."""


class WorkCount:
    """The steps that one reading has taken."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.steps = 0
        self._most = most

    def add(self, steps: int) -> None:
        """Count further steps. `TooMuchWork` above the limit."""
        self.steps += steps
        if self.steps > self._most:
            raise TooMuchWork

    def stop(self) -> None:
        """End the work at the next step that is counted."""
        self._most = -1


_count: ContextVar[WorkCount | None] = ContextVar("work_count", default=None)


def count_steps(steps: int) -> None:
    """Count steps of the reading that runs here, if one does. `TooMuchWork` above its limit."""
    if count := _count.get():
        count.add(steps)


def text_of(element: HtmlElement) -> str:
    """All text in an element; each of its characters is a step."""
    text = str(element.text_content())
    count_steps(len(text) + _STEPS_OF_AN_ELEMENT)
    return text


def counted(work: Callable[[], T], count: WorkCount) -> T:
    """Do `work`, with its steps counted in `count`. `TooMuchWork` above its limit."""
    token = _count.set(count)
    try:
        return work()
    finally:
        _count.reset(token)


@dataclass(frozen=True, slots=True)
class ReadingLimit:
    """At most `most_steps` steps, and at most `SECONDS_FACTOR` times `seconds`."""

    seconds: float
    most_steps: int = MOST_STEPS

    async def within(self, work: Callable[[], T]) -> T:
        """The result of `work`, done in a thread; `TooMuchWork` when a limit is reached.

        The thread is not waited for then: it ends by itself at the next step that it counts.
        """
        count = WorkCount(self.most_steps)
        try:
            async with asyncio.timeout(SECONDS_FACTOR * self.seconds):
                return await asyncio.to_thread(counted, work, count)
        except TimeoutError:
            raise TooMuchWork from None
        finally:
            count.stop()
