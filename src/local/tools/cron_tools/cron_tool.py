"""What each tool for jobs is."""

from __future__ import annotations

from local.tools.cron_tools.cron_config import CronConfig
from local.tools.cron_tools.cron_scheduler import CronScheduler
from local.tools.tool import Tool


class CronTool(Tool):
    """A tool for the jobs of whoever asks. How much it may do, it says itself."""

    trusted = True  # and says where it shows the words of a job that was made under taint
    category = "meta"

    def __init__(self, config: CronConfig, scheduler: CronScheduler) -> None:
        super().__init__(config)
        self._scheduler = scheduler
