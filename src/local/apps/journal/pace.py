"""How fast an export is played."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

STANDARD_INPUT = 0

# Waits until a message is due that came so many seconds after the first. False: nothing more is to be played.
Pace = Callable[[float], Awaitable[bool]]


def at_once() -> Pace:
    """As fast as the bus takes it."""

    async def due(seconds: float) -> bool:
        await asyncio.sleep(0)  # let Ctrl-C in
        return True

    return due


def spaced(rate: float) -> Pace:
    """With the pauses there were, `rate` times as fast; counted from the first message."""
    clock = asyncio.get_running_loop().time
    started: float | None = None

    async def due(seconds: float) -> bool:
        nonlocal started
        started = clock() if started is None else started
        await asyncio.sleep(started + seconds / rate - clock())
        return True

    return due


def stepwise(descriptor: int = STANDARD_INPUT) -> Pace:
    """One message for each line of input, until its end."""
    loop, enters = asyncio.get_running_loop(), asyncio.Queue[bool]()

    def listen() -> None:
        with suppress(RuntimeError):  # the loop has ended
            while data := os.read(descriptor, 1024):  # what blocks inside Python's own buffers blocks the exit
                for _ in range(data.count(b"\n")):
                    loop.call_soon_threadsafe(enters.put_nowait, True)
            loop.call_soon_threadsafe(enters.put_nowait, False)

    async def due(seconds: float) -> bool:
        return await enters.get()

    threading.Thread(target=listen, name="journal play input", daemon=True).start()
    return due
