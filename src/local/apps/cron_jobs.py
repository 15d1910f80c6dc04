"""Jobs at set times, as a door sees them."""

from __future__ import annotations

from typing import Any

from local.apps.participant_client import ParticipantClient
from local.protocol.cron_messages import CronRequest, CronResult, CronVerb


class CronJobs(ParticipantClient):
    """Asks whoever keeps jobs."""

    participant = "cron"
    publishes = (CronRequest,)

    async def ask(self, verb: CronVerb, of_user: str | None, **fields: Any) -> CronResult:
        """The answer to a `CronRequest` with these fields."""
        return await self._request(CronRequest(verb=verb, of_user=of_user, **fields), CronResult)
