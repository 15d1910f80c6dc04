"""A goal: what its owner wants to get to, and how often that is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from local.services.schedules.schedule import Schedule, read_schedule
from local.services.schedules.time_zone import time_zone

DAY_SECONDS = 24 * 3600  # a clock that was put back by more than this was wrong before


class GoalState(StrEnum):
    """Where a goal stands. Only what is `active` is checked."""

    ACTIVE = "active"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class GoalWords:
    """What was said of a goal last: for the check at the time `due_at`, resting on the exchanges with the engrams
    `sources`; `left_out` counts those that were not read because of words of strangers. `is_told` says that it is on
    record, `is_seen` that its owner has seen it."""

    text: str
    due_at: int
    sources: tuple[str, ...] = ()
    left_out: int = 0
    is_told: bool = False
    is_seen: bool = False


@dataclass(frozen=True)
class Goal:
    """Times are whole seconds since 1970. All that was due up to `decided` is decided, `checked_for` is the last time
    that was; `checks` counts them, `quiet` those after which nothing was said."""

    goal_id: str
    text: str
    schedule: str
    time_zone: str
    created_at: int
    created_by: str
    decided: int
    state: GoalState = GoalState.ACTIVE
    checked_for: int = 0
    checks: int = 0
    quiet: int = 0
    words: GoalWords | None = None

    @cached_property
    def times(self) -> Schedule:
        """When the goal is checked. Raises `BadSchedule`."""
        return read_schedule(self.schedule, time_zone(self.time_zone), self.created_at)

    def due_at(self, now: int) -> int | None:
        """The latest time at which a check was due and is not decided yet; None if there is none. Of those that have
        passed meanwhile it is the only one, and a clock that is put back brings none again."""
        if self.state is not GoalState.ACTIVE:
            return None
        last, _ = self.times.last(min(self.decided, now), now)
        if last is not None and last <= self.checked_for < now + DAY_SECONDS:
            return None
        return last

    def next_at(self, now: int) -> int | None:
        """When the goal is due next; None if never."""
        return self.times.after(max(self.decided, now)) if self.state is GoalState.ACTIVE else None

    def decided_for(self, due_at: int, now: int) -> Goal:
        """The goal once a check is begun."""
        return replace(self, decided=now, checked_for=due_at)

    def checked(self, words: GoalWords | None, *, is_done: bool) -> Goal:
        """The goal after that check, which had something to say or had not."""
        state = GoalState.DONE if is_done else self.state
        quiet = self.quiet + (words is None)
        return replace(self, state=state, checks=self.checks + 1, quiet=quiet, words=words or self.words)

    def rests_on(self, engram_id: str) -> bool:
        """Whether what was said of it last rests on that exchange."""
        return self.words is not None and engram_id in self.words.sources

    def words_become(self, due_at: int, *, is_told: bool = False, is_seen: bool = False) -> Goal:
        """The goal with its words for that time told, or seen; as it is if they are not the last ones any more."""
        words = self.words
        if words is None or words.due_at != due_at:
            return self
        words = replace(words, is_told=words.is_told or is_told, is_seen=words.is_seen or is_seen)
        return replace(self, words=words)
