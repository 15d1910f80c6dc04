"""The tool that makes a job."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from local.errors import LocalError, ToolError
from local.protocol.cron_messages import CronOrder
from local.tools.cron_tools.cron_list_tool import job_line
from local.tools.cron_tools.cron_tool import CronTool
from local.tools.cron_tools.job_order import JobMaker

ID_CHARACTERS = 12


class CronAddTool(CronTool):
    """Have a question or task put to you at set times, also when the user is away. Only if the user asks for it."""

    name = "cron_add"
    effect = "write"
    safety = "L2"

    async def run(
        self,
        prompt: Annotated[str, Field(max_length=20_000, description="What is to be asked then, complete in itself")],
        schedule: Annotated[
            str, "'0 9 * * 1-5' (cron: minute hour day month weekday), 'at 2026-12-24T18:00', 'in 10m' or 'every 30m'"
        ],
        name: Annotated[str, "What the job is called"] = "",
        time_zone: Annotated[str, "Such as Europe/Berlin; empty is the user's"] = "",
        answer_in: Annotated[Literal["own", "here"], "A conversation of its own each time, or this one"] = "own",
    ) -> str:
        """The job, and when it runs first."""
        trace, request = self.asked_by(), self.request()
        order = CronOrder(
            prompt=prompt, schedule=schedule, name=name, time_zone=time_zone or None,
            session_id=(trace.session_id or request.query_id) if answer_in == "here" else None,
        )  # fmt: skip
        job_id = hashlib.sha256(request.call_id.encode()).hexdigest()[:ID_CHARACTERS]
        maker = JobMaker(job_id, trace.user_id, by=f"{self.name} {request.call_id}", tainted=request.tainted)
        try:
            stored = await self._scheduler.book.add(order, maker)
        except LocalError as error:
            raise ToolError(str(error), kind=error.kind) from None
        self._scheduler.wake()
        return f"The job is made. {job_line(self._scheduler.book.record(stored))}"
