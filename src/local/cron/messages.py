"""Jobs that are done at set times: what doors ask of them, and what happens to them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.bus.message import Data, Delivery, ErrorInfo, Message
from local.bus.vocabulary import Mode

CronVerb = Literal["list", "add", "remove", "pause", "resume", "run", "history"]
MissedPolicy = Literal["once", "all", "none"]
CronRunState = Literal["due", "asked", "answered", "failed", "cancelled", "refused", "missed"]


class NewJob(Data):
    """What somebody wants done, and when. `schedule` is a cron expression, `at` a time, or `every` so often, in that
    time zone or the one of the settings. Without `session_id` each run is a conversation of its own."""

    prompt: str
    schedule: str
    name: str = ""
    time_zone: str | None = None
    missed: MissedPolicy = "once"
    session_id: str | None = None
    mode: Mode | None = None
    max_runs_a_day: int | None = None
    max_tokens_a_day: int | None = None


class CronJobRecord(NewJob):
    """A job as it is kept. Times are seconds since 1970; `tainted` says that it was made in a conversation with words
    of strangers, so that its runs are tainted, too."""

    job_id: str
    user_id: str | None = None
    enabled: bool = True
    tainted: bool = False
    created_by: str = ""
    created_at: float
    next_at: float | None = None


class CronRunRecord(Data):
    """One run, for the time `scheduled_at`; `detail` says what is to be said of how it stands."""

    job_id: str
    run_id: str
    scheduled_at: float
    query_id: str
    state: CronRunState
    by_hand: bool = False
    detail: str = ""
    tokens: int = 0
    ended_at: float | None = None


class CronJobChanged(Message):
    """`cron`, when a job was made, paused, goes on or was removed (`what`)."""

    subject = "cron.job.changed"
    delivery = Delivery.CONFIRMED
    what: Literal["active", "paused", "removed"]
    job: CronJobRecord


class CronRun(Message):
    """`cron`, when a run is asked, and when it is over, was missed or refused."""

    subject = "cron.run"
    delivery = Delivery.CONFIRMED
    name: str
    run: CronRunRecord


class CronRequest(Message):
    """A door, for jobs: list, add (`order`), remove, pause, resume, run now, or history (the runs of one). With
    `of_user` only those of that user are there. Not on record, as what it asks for may be refused."""

    subject = "cron.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "cron"
    verb: CronVerb
    of_user: str | None = None
    job_id: str = ""
    order: NewJob | None = None
    by: str = ""
    limit: int = Field(100, ge=1, le=500)


class CronResult(Message):
    """`cron`, to that: the jobs, all or the one that was meant, and of run and history the runs, the latest first."""

    subject = "cron.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    jobs: tuple[CronJobRecord, ...] = ()
    runs: tuple[CronRunRecord, ...] = ()
    error: ErrorInfo | None = None
