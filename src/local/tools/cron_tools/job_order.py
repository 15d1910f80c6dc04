"""What somebody wants done becomes a job, or is refused in one line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from local.errors import BadRequest
from local.protocol.cron_messages import CronOrder
from local.services.schedules.job import Job
from local.services.schedules.schedule import require_future
from local.services.schedules.time_zone import time_zone
from local.tools.cron_tools.cron_config import CronConfig

MOST_CHARACTERS = 20_000
NAME_CHARACTERS = 80
MOST_RUNS = 1440
_SESSION = re.compile(r"[A-Za-z0-9._:~-]{1,128}")


class BadJob(BadRequest):
    """A job that nobody could do."""

    kind = "invalid"


@dataclass(frozen=True, slots=True)
class JobMaker:
    """Who makes a job, under which id: a user, by a door or a model; in a `tainted` conversation if so."""

    job_id: str
    user_id: str | None = None
    by: str = ""
    tainted: bool = False


def job_of(order: CronOrder, maker: JobMaker, config: CronConfig, zone: str, now: float) -> Job:
    """The job; `zone` counts where the order names none. Raises `BadJob`, `BadSchedule`."""
    _require_bounds(order)
    job = Job(
        job_id=maker.job_id,
        name=_name(order),
        prompt=order.prompt,
        schedule=" ".join(order.schedule.split()),
        time_zone=order.time_zone or zone,
        created_at=int(now),
        missed=order.missed,
        session_id=order.session_id,
        user_id=maker.user_id,
        mode=order.mode or "dontAsk",
        tainted=maker.tainted,
        created_by=maker.by,
        max_runs_a_day=order.max_runs_a_day or config.max_runs_a_day,
        max_tokens_a_day=order.max_tokens_a_day or config.max_tokens_a_day,
    )
    time_zone(job.time_zone)
    require_future(job.times, now)
    return job


def _require_bounds(order: CronOrder) -> None:
    if not order.prompt.strip():
        raise BadJob("prompt: is blank; expected what is to be asked")
    if len(order.prompt) > MOST_CHARACTERS:
        raise BadJob(f"prompt: has {len(order.prompt)} characters; expected {MOST_CHARACTERS} at most")
    if order.session_id is not None and not _SESSION.fullmatch(order.session_id):
        raise BadJob("session_id: expected up to 128 letters, digits and any of ._:~-")
    if order.max_runs_a_day is not None and not 1 <= order.max_runs_a_day <= MOST_RUNS:
        raise BadJob(f"max_runs_a_day: expected 1 to {MOST_RUNS}, found {order.max_runs_a_day}")
    if order.max_tokens_a_day is not None and order.max_tokens_a_day < 1:
        raise BadJob(f"max_tokens_a_day: expected 1 at least, found {order.max_tokens_a_day}")


def _name(order: CronOrder) -> str:
    """What it is called, in one line: the beginning of its prompt, if it was given no name."""
    return " ".join((order.name.strip() or order.prompt).split())[:NAME_CHARACTERS]
