"""The settings of jobs at set times."""

from __future__ import annotations

from pydantic import Field

from local.config import Settings


class CronConfig(Settings):
    """`cron.yaml`; the comments there say what each key means."""

    time_zone: str = ""
    max_jobs: int = Field(100, ge=0, le=1000)
    max_runs_a_day: int = Field(100, ge=1, le=1440)
    max_tokens_a_day: int | None = Field(None, ge=1)
    all_tokens_a_day: int | None = Field(None, ge=1)
