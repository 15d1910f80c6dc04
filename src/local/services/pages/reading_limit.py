"""How long a page may take to be read: in processor time, because a machine that is busy is not the page's fault."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

# As many times its processor time a reading may last where others have the processor.
WALL_FACTOR = 4.0
_SHORTEST_LOOK = 0.05  # seconds between two looks at the clocks


@dataclass(frozen=True, slots=True)
class ReadingLimit:
    """A limit in seconds of this process's processor time, and `WALL_FACTOR` times as many on the wall."""

    seconds: float
    processor: Callable[[], float] = time.process_time

    async def within(self, work: Callable[[], T]) -> T:
        """What a thread makes of `work`; `TimeoutError` when the limit is reached, and nobody waits for the thread."""
        wall, spent = asyncio.get_running_loop().time(), self.processor()
        running = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            while not running.done():
                on_wall = wall + WALL_FACTOR * self.seconds - asyncio.get_running_loop().time()
                left = min(on_wall, spent + self.seconds - self.processor())
                if left <= 0:
                    raise TimeoutError
                await asyncio.wait({running}, timeout=max(_SHORTEST_LOOK, left))
            return running.result()
        finally:
            running.cancel()
