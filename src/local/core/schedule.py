"""The schedules of jobs: a cron expression, one time, or an interval."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from local.core.errors import BadRequest

MOST_CHARACTERS = 200
LEAST_SECONDS = 60
MOST_SECONDS = 366 * 24 * 3600
COUNTED = 10_000  # missed times of a cron expression that are counted at most
FIELDS = 5
NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_SPAN = re.compile(r"(?:every|in)\s+(\d{1,9})\s*(s|m|min|h|d|w|seconds?|minutes?|hours?|days?|weeks?)", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LOOK_BACK = (3600, 86400, 32 * 86400, 367 * 86400)  # seconds before now, in which the last moment is looked for
_EXPECTED = "expected a cron expression such as '0 9 * * 1-5', 'at 2026-12-24T18:00', 'in 10m' or 'every 30m'"


class BadSchedule(BadRequest):
    """A text that is not a valid schedule."""

    kind = "invalid"


class Schedule(Protocol):
    """A schedule: a series of times in whole seconds since 1970."""

    def after(self, moment: int) -> int | None:
        """Return the first time after that; None if there is none."""

    def last(self, after: int, until: int) -> tuple[int | None, int]:
        """The last one after the one time and not after the other, and how many there are between."""

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """The last ones there, at most so many, in order."""


@dataclass(frozen=True, slots=True)
class OneShot:
    """A schedule of one time."""

    at: int

    def after(self, moment: int) -> int | None:
        """See `Schedule`."""
        return self.at if self.at > moment else None

    def last(self, after: int, until: int) -> tuple[int | None, int]:
        """See `Schedule`."""
        return (self.at, 1) if after < self.at <= until else (None, 0)

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """See `Schedule`."""
        return [self.at] if after < self.at <= until else []


@dataclass(frozen=True, slots=True)
class Interval:
    """A schedule with an interval of `seconds`, counted from `begin`; changes of the wall clock have no effect."""

    begin: int
    seconds: int

    def after(self, moment: int) -> int | None:
        """See `Schedule`."""
        return self.begin + max(1, (moment - self.begin) // self.seconds + 1) * self.seconds

    def last(self, after: int, until: int) -> tuple[int | None, int]:
        """See `Schedule`."""
        first = self.after(after)
        if first is None or first > until:
            return None, 0
        more = (until - first) // self.seconds
        return first + more * self.seconds, more + 1

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """See `Schedule`."""
        last, count = self.last(after, until)
        if last is None:
            return []
        return [last - step * self.seconds for step in reversed(range(min(count, limit)))]


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A schedule of five fields, read as Debian's cron reads them in a time zone.

    When clocks are put forward, jobs with fixed hours and minutes in the skipped hour run right after it; when clocks
    are put back, they run at the first of the two times. Jobs with a star for minutes or hours follow real time.
    """

    text: str
    zone: ZoneInfo

    def after(self, moment: int) -> int | None:
        """See `Schedule`."""
        return next(self._moments(moment), None)

    def last(self, after: int, until: int) -> tuple[int | None, int]:
        """See `Schedule`; at most `COUNTED` are counted."""
        first = takewhile(lambda moment: moment <= until, self._moments(after))
        return self._last_before(after, until), sum(1 for _ in islice(first, COUNTED))

    def between(self, after: int, until: int, limit: int) -> list[int]:
        """See `Schedule`."""
        for start in self._starts(after, until):
            found = self._within(start, until)
            if len(found) >= limit or start == after:
                return found[-limit:]
        return []

    def _last_before(self, after: int, until: int) -> int | None:
        for start in self._starts(after, until):
            if found := self._within(start, until):
                return found[-1]
        return None

    def _starts(self, after: int, until: int) -> Iterator[int]:
        yield from (until - seconds for seconds in _LOOK_BACK if until - seconds > after)
        yield after

    def _within(self, after: int, until: int) -> list[int]:
        return list(takewhile(lambda moment: moment <= until, self._moments(after)))

    def _moments(self, after: int) -> Iterator[int]:
        latest = after
        for each in CronSim(self.text, datetime.fromtimestamp(after, self.zone)):
            moment = int(each.timestamp())
            if moment > latest:  # one that clocks show twice comes twice
                latest = moment
                yield moment


def read_schedule(text: str, zone: ZoneInfo, now: float) -> Schedule:
    """Parse the schedule of a job that is created `now`. Raises `BadSchedule`."""
    words = " ".join(text.split())
    if not words or len(text) > MOST_CHARACTERS:
        raise BadSchedule(f"schedule: {'is empty' if not words else 'is too long'}; {_EXPECTED}")
    if words.lower().startswith("at "):
        return OneShot(_moment(words[3:].strip(), zone))
    if words.lower().startswith("in "):
        return OneShot(math.floor(now) + _seconds(words.lower(), 1))
    if words.lower().startswith("every"):
        return Interval(math.floor(now), _seconds(words.lower(), LEAST_SECONDS))
    return _cron(words, zone)


def require_future(schedule: Schedule, now: float) -> int:
    """Return the first time at which a new job is due. Raises `BadSchedule` if there is none."""
    if isinstance(schedule, OneShot) and schedule.at <= now:
        raise BadSchedule("schedule: that time has passed")
    try:
        first = schedule.after(math.floor(now))
    except (OverflowError, ValueError, OSError):
        first = None
    if first is None:
        raise BadSchedule("schedule: that time never occurs")
    return first


def _cron(words: str, zone: ZoneInfo) -> CronExpression:
    fields = NAMED.get(words.lower(), words)
    if len(fields.split()) != FIELDS:
        raise BadSchedule(f"schedule {words!r}: {_EXPECTED}")
    try:
        CronSim(fields, datetime.fromtimestamp(0, zone))
    except (CronSimError, ValueError, AssertionError) as error:  # it asserts that a step begins at a number
        why = str(error).removeprefix("Bad ") or "a step has no start"
        raise BadSchedule(f"schedule {words!r}: {why} is invalid; {_EXPECTED}") from None
    return CronExpression(fields, zone)


def _moment(words: str, zone: ZoneInfo) -> int:
    try:
        moment = datetime.fromisoformat(words)
        return math.floor((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError):
        raise BadSchedule(f"schedule: {words!r} is not a time; expected 'at 2026-12-24T18:00'") from None


def _seconds(words: str, least: int) -> int:
    found = _SPAN.fullmatch(words)
    if found is None:
        raise BadSchedule(f"schedule {words!r}: expected 'every 30m' or 'in 10m', with s, m, h, d or w")
    seconds = int(found[1]) * _UNITS[found[2][0]]
    if not least <= seconds <= MOST_SECONDS:
        raise BadSchedule(f"schedule {words!r}: expected {least} seconds at least and a year at most")
    return seconds


# The time zones that jobs are in.

LOCAL_TIME = Path("/etc/localtime")
_FOLDER = "zoneinfo"


def time_zone(name: str) -> ZoneInfo:
    """Return the zone of that name, such as Europe/Berlin. Raises `BadSchedule`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSchedule(f"time_zone: there is no {name[:80]!a}; expected one such as Europe/Berlin or UTC") from None


def zone_of_this_machine() -> str:
    """Return the name of this machine's time zone, from the link to it; UTC if unknown."""
    parts = LOCAL_TIME.resolve().parts
    name = "/".join(parts[parts.index(_FOLDER) + 1 :]) if _FOLDER in parts else ""
    try:
        return ZoneInfo(name).key if name else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
