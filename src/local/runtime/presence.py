"""Whether another participant lives, by its status beat: for those who would wait for it in vain."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from local.protocol.messages import ParticipantStatus

SILENT_SECONDS = 3.0  # a participant is heard each second


class Presence:
    """One participant, by its name, as far as `heard` was told. It lives for three seconds after its last sign of life,
    and only while it says that it is ready."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._heard_at = -math.inf
        self._heard = asyncio.Event()

    def heard(self, status: ParticipantStatus) -> bool:
        """A participant says how it is; returns whether it is this one."""
        if status.name != self._name:
            return False
        self._heard_at = self._clock() if status.state == "ready" else -math.inf
        self._heard.set()
        return True

    @property
    def lives(self) -> bool:
        """Whether it was heard lately."""
        return self._clock() - self._heard_at <= SILENT_SECONDS

    async def lives_within(self, seconds: float) -> bool:
        """The same, waiting so long for a sign of life."""
        try:
            async with asyncio.timeout(seconds):
                while not self.lives:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            return False
        return True
