"""Whether it is time to dream."""

from __future__ import annotations

from datetime import datetime

from local.agents.dreaming.dream_diary import DreamState
from local.agents.dreaming.dreamer_config import DreamerConfig

HOUR, MINUTE = 3600.0, 60.0


def what_it_waits_for(state: DreamState, config: DreamerConfig, now: float, idle_seconds: float) -> str:
    """In a few words; empty if it is time. `now` is in seconds since 1970; a clock that was set back counts as no time
    that has passed, but not for longer than it lasts."""
    if not is_on(state, config):
        return "it is switched off"
    due = min(state.dreamt_at, now) + config.every_hours * HOUR - now
    if due > 0:
        return f"{due / HOUR:.1f} h until the next dream"
    if idle_seconds < config.idle_minutes * MINUTE:
        return f"{config.idle_minutes:g} min without a question"
    return out_of_tokens(state, config, now)


def out_of_tokens(state: DreamState, config: DreamerConfig, now: float) -> str:
    """In a few words, if nothing is left of today's; else empty."""
    used = state.tokens_on(datetime.fromtimestamp(now).date())
    return f"{used} of {config.tokens_per_day} tokens are used today" if used >= config.tokens_per_day else ""


def is_on(state: DreamState, config: DreamerConfig) -> bool:
    """As it was switched last, else as the settings say."""
    return config.dream if state.is_on is None else state.is_on
