"""Whether it is time for a routine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from local.agents.reflecting.routine_diary import RoutineState

HOUR, MINUTE = 3600.0, 60.0


@dataclass(frozen=True, slots=True)
class RoutinePolicy:
    """What the settings say of a routine: whether it is on where nobody has switched it, how many seconds lie between
    two times, how many of silence it waits for, and how many tokens it may use a day."""

    is_on: bool
    every_seconds: float
    idle_seconds: float
    tokens_per_day: int


def what_it_waits_for(state: RoutineState, policy: RoutinePolicy, now: float, idle_seconds: float) -> str:
    """In a few words; empty if it is time. `now` is in seconds since 1970; a clock that was set back counts as no time
    that has passed, but not for longer than the pause lasts."""
    if not is_on(state, policy):
        return "it is switched off"
    due = min(state.done_at, now) + policy.every_seconds - now
    if due > 0:
        return f"{due / HOUR:.1f} h until the next time"
    if idle_seconds < policy.idle_seconds:
        return f"{policy.idle_seconds / MINUTE:g} min without a question"
    return out_of_tokens(state, policy, now)


def out_of_tokens(state: RoutineState, policy: RoutinePolicy, now: float) -> str:
    """In a few words, if nothing is left of today's; else empty."""
    used = state.tokens_on(datetime.fromtimestamp(now).date())
    return f"{used} of {policy.tokens_per_day} tokens are used today" if used >= policy.tokens_per_day else ""


def is_on(state: RoutineState, policy: RoutinePolicy) -> bool:
    """Whether the routine is on: as somebody switched it last, else as the settings say."""
    return policy.is_on if state.is_on is None else state.is_on
