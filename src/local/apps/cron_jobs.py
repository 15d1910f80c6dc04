"""Jobs at set times, as a door sees them: asked over the bus of whoever keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.cron_messages import CronRequest, CronResult, CronVerb
from local.protocol.message import ErrorInfo

ANSWER_SECONDS = 10.0
UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way


class CronAway(LocalError):
    """Nobody who keeps jobs takes part."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__("no jobs are kept here: `cron` takes part if it is among the `participants` in system.yaml")


class CronRefused(LocalError):
    """What was asked for was not done; `kind` and text are those of whoever keeps the jobs."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = error.kind


class CronJobs:
    """`is_there()` says whether one was heard of lately who keeps jobs."""

    publishes = (CronRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: CronVerb, of_user: str | None, **fields: Any) -> CronResult:
        """The answer to a `CronRequest` with these fields. Raises `CronRefused`, `CronAway`."""
        request = CronRequest(verb=verb, of_user=of_user, **fields)
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, CronResult, seconds)
        except RequestTimeout:
            raise CronAway from None
        if result.error is not None:
            raise CronRefused(result.error)
        return result
