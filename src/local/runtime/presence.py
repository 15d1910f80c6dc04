"""Who lives: how often participants say how they are, and after which silence one counts as gone. Decided here alone.

Two other limits are of other things: the supervisor watches processes on their lifelines (`hang_seconds`), so that none
looks dead because the bus stalls; and a claim to a model's line is repeated twice a second while there is one, because
a lease that its holder has left is in everybody's way.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from local.protocol.messages import ParticipantStatus
from local.tick import tick_number

LOOK_SECONDS = 1.0  # what is new about a participant is told within it
BEAT_SECONDS = 5.0  # what is not new is told as often as this
SILENT_SECONDS = 12.0  # two beats may get lost
KEPT = ("starting", "ready", "restarting")  # children that the supervisor keeps alive
OF_THE_BEATS = {"published", "received", "handled"}  # counters that every beat changes


class StatusBeat:
    """When a participant says how it is: with the next look if anything but the beats themselves has changed, or if
    somebody has come who does not know it yet; else every five seconds, when all others do."""

    def __init__(self) -> None:
        self._told: object = None
        self._told_in = -1

    def renew(self) -> None:
        """Somebody may not have heard it."""
        self._told = None

    def is_due(self, status: ParticipantStatus, now: float) -> bool:
        """Whether to tell this at `now`, in seconds of one monotonic clock."""
        counters = {name: count for name, count in status.counters.items() if name not in OF_THE_BEATS}
        last_seq = {subject: seq for subject, seq in status.last_seq.items() if subject != status.subject}
        what = (status.state, status.inflight, counters, status.details, last_seq, status.subscriptions)
        beat = tick_number(now, BEAT_SECONDS)
        if what == self._told and beat == self._told_in:
            return False
        self._told, self._told_in = what, beat
        return True


class Presence:
    """One participant, by its name, as far as `heard` was told. It lives until it has been silent for too long,
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
        """Whether the participant was heard lately."""
        return self._clock() - self._heard_at <= SILENT_SECONDS

    async def lives_within(self, seconds: float) -> bool:
        """Whether the participant lives, waiting so long for a sign of it."""
        try:
            async with asyncio.timeout(seconds):
                while not self.lives:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            return False
        return True
