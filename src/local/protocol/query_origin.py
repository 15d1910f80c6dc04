"""Who is behind a query."""

from __future__ import annotations

from typing import Final

USER: Final = "user"
SCHEDULE: Final = "schedule"  # a job of `cron`, at its time
AGENT: Final = "agent"  # a model, that has an agent do a task
BACKGROUND: Final = frozenset({SCHEDULE})  # nobody waits for these answers, so that every user's turn goes first
