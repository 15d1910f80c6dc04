"""A job: what is asked, when, and how; and one run of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Literal

from local.services.schedules.schedule import Schedule, read_schedule
from local.services.schedules.time_zone import time_zone

Missed = Literal["once", "all", "none"]
_NAMESPACE = uuid.UUID("0c1a6c0e-9d5e-4d3a-8f52-3b7f0f6f2c44")


class RunState(StrEnum):
    """Where a run stands. `due` is on record here and nowhere else, `asked` a query on record; the others are ends."""

    DUE = "due"
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"  # nobody has asked it: the system could not take it in time, or its job's budget was spent
    MISSED = "missed"


OPEN = frozenset({RunState.DUE, RunState.ASKED})


@dataclass(frozen=True)
class Job:
    """What does not change of it. Times are whole seconds since 1970. Without `session_id` each run is a conversation
    of its own; `mode` is that of its queries. `missed` says what becomes of times that have passed while nothing could
    run: one run for all of them, one for each, or none. `tainted` is that of the conversation in which it was made. A
    budget that is None is none."""

    job_id: str
    name: str
    prompt: str
    schedule: str
    time_zone: str
    created_at: int
    missed: Missed = "once"
    session_id: str | None = None
    user_id: str | None = None
    mode: str = "dontAsk"
    tainted: bool = False
    created_by: str = ""
    max_runs_a_day: int = 100
    max_tokens_a_day: int | None = None

    @cached_property
    def times(self) -> Schedule:
        """When the job is due. Raises `BadSchedule`."""
        return read_schedule(self.schedule, time_zone(self.time_zone), self.created_at)

    def day_begins(self, now: int) -> int:
        """When the day of its time zone has begun in which `now` is."""
        local = datetime.fromtimestamp(now, time_zone(self.time_zone))
        return int(local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp())


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run: of which job, for which time. One that a person has started is `by_hand`, and its time is when. It is
    asked anew, as the next `attempt`, where its query has ended without having had a turn."""

    job_id: str
    scheduled_at: int
    state: RunState = RunState.DUE
    by_hand: bool = False
    attempt: int = 1
    detail: str = ""
    tokens: int = 0
    begun_at: float = 0.0
    ended_at: float | None = None

    @property
    def run_id(self) -> str:
        """The id of a run, equal whenever the run is decided."""
        return f"{self.job_id}.{self.scheduled_at}{'h' if self.by_hand else ''}"

    @property
    def query_id(self) -> str:
        """The id of its query: the same whenever it is asked, so that it is one query."""
        return uuid.uuid5(_NAMESPACE, f"{self.run_id}.{self.attempt}").hex
