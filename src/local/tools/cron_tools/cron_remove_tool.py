"""The tool that removes a job."""

from __future__ import annotations

from typing import Annotated

from local.errors import LocalError, ToolError
from local.protocol.memory_messages import OWNER
from local.tools.cron_tools.cron_tool import CronTool


class CronRemoveTool(CronTool):
    """Remove one of the user's scheduled jobs for good."""

    name = "cron_remove"
    effect = "write"
    safety = "L2"

    async def run(self, job_id: Annotated[str, "As cron_list tells it"]) -> str:
        """That the job is gone."""
        try:
            stored = await self._scheduler.remove(job_id, self.asked_by().user_id or OWNER)
        except LocalError as error:
            raise ToolError(str(error), kind=error.kind) from None
        return f"The job {stored.job.name!r} is removed."
