"""The messages about scheduled jobs. A job has one shape here, which the store keeps as a row, too."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.bus.message import Data, Delivery, ErrorInfo, Message
from local.bus.vocabulary import Mode

CronVerb = Literal["list", "preview", "add", "change", "remove", "pause", "resume", "run", "history"]
MissedPolicy = Literal["once", "all", "none"]
CronRunState = Literal["due", "asked", "answered", "failed", "cancelled", "refused", "missed"]


class NewJob(Data):
    """The order of a new job. `schedule` is a cron expression, `at` a time, `in` a delay or `every` interval, in that
    time zone or the one of the settings. `missed` says how times are handled that passed while LoCAL2 did not run: one
    run for all of them, one for each, or none. Without `session_id` each run is a separate conversation. None means
    the default of the settings.

    A new field of a job is added here: the HTTP body, the stored row and the shown job follow. `local2 cron add` and
    the tool `cron_add` need a new option if they are to set it.
    """

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
    """A job as it is stored and shown. Times are seconds since 1970. A job that was made in a conversation with
    untrusted content is `tainted`, and so are its runs. `enabled` and `next_at` are computed, not stored.
    """

    time_zone: str = "UTC"
    mode: Mode = "dontAsk"
    max_runs_a_day: int = 100
    job_id: str
    user_id: str | None = None
    enabled: bool = True
    tainted: bool = False
    created_by: str = ""
    created_at: float
    next_at: float | None = None


class CronRunRecord(Data):
    """One run of a job, for the time `scheduled_at`. `detail` is a sentence about its state, if there is one."""

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
    """Published by `cron` when a job was added, changed, paused, resumed or removed; `what` is its state."""

    subject = "cron.job.changed"
    delivery = Delivery.CONFIRMED
    what: Literal["active", "paused", "removed"]
    job: CronJobRecord


class CronRun(Message):
    """Published by `cron` when a run is asked as a query, and when it has ended, was missed or was refused."""

    subject = "cron.run"
    delivery = Delivery.CONFIRMED
    name: str
    run: CronRunRecord


class CronRequest(Message):
    """A frontend's request about jobs: list, preview (when the job of `order` would run), add (`order`), change (to
    `order`), remove, pause, resume, run now, or history (the runs of one). With `of_user` only that user's jobs exist.
    It is not recorded, because it may be refused."""

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
    """The answer of `cron`: all jobs or the requested one; for run and history also the runs, the latest first; for
    preview the next `times`, in seconds since 1970, and the time zone in which they were read."""

    subject = "cron.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    jobs: tuple[CronJobRecord, ...] = ()
    runs: tuple[CronRunRecord, ...] = ()
    times: tuple[float, ...] = ()
    time_zone: str = ""
    error: ErrorInfo | None = None
