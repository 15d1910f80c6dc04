"""The tool that tells which jobs there are."""

from __future__ import annotations

from datetime import datetime

from local.protocol.cron_messages import CronJobRecord
from local.protocol.memory_messages import OWNER
from local.services.schedules.time_zone import time_zone
from local.tools.cron_tools.cron_tool import CronTool
from local.tools.tool import ToolOutput


class CronListTool(CronTool):
    """List the user's scheduled jobs: what is asked, when, and when next."""

    name = "cron_list"
    safety = "L0"

    async def run(self) -> ToolOutput:
        """A line for each."""
        book = self._scheduler.book
        jobs = [book.record(stored) for stored in book.listed(self.asked_by().user_id or OWNER)]
        text = "\n".join(map(job_line, jobs)) or "There are no scheduled jobs."
        return ToolOutput(text, tainted=any(job.tainted for job in jobs))


def job_line(job: CronJobRecord) -> str:
    """A job in one line, for a model."""
    when = f"{job.schedule} ({job.time_zone})"
    return f"{job.job_id}: {job.name!r}, {when}, {_next(job)}: {' '.join(job.prompt.split())[:300]}"


def _next(job: CronJobRecord) -> str:
    if not job.enabled:
        return "paused"
    if job.next_at is None:
        return "over"
    return f"next {datetime.fromtimestamp(job.next_at, time_zone(job.time_zone or 'UTC')):%A, %Y-%m-%d %H:%M}"
