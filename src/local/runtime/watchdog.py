"""Who has been silent for too long, and when the silence was our own."""

from __future__ import annotations

LATE_TICKS = 2.0


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
