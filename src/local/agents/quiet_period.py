"""When to begin what nobody waits for: a moment after the last answer, for all answers together."""

from __future__ import annotations

import asyncio

QUIET_SECONDS = 0.5
LONGEST_SECONDS = 2.0


class QuietPeriod:
    """A debounce: whoever waits for `begins` goes on half a second after the last `disturbed`, and after two at the
    latest; all go on at once, so that they have each other's company in commits and wake-ups."""

    def __init__(self) -> None:
        self._disturbed_at = 0.0
        self._longest_until = 0.0
        self._begins: asyncio.Event | None = None

    def disturbed(self) -> None:
        """A user was answered, and may go on at once."""
        self._disturbed_at = asyncio.get_running_loop().time()

    async def begins(self) -> None:
        """Wait for the next one."""
        begins = self._begins
        if begins is None:
            self._begins = begins = asyncio.Event()
            self._longest_until = asyncio.get_running_loop().time() + LONGEST_SECONDS
            self._look()
        await begins.wait()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        begins_at = min(self._disturbed_at + QUIET_SECONDS, self._longest_until)
        if loop.time() < begins_at:
            loop.call_at(begins_at, self._look)
        elif self._begins is not None:
            self._begins.set()
            self._begins = None
