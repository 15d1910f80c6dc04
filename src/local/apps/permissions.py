"""Leave as a door sees it: what waits for a decision, and what was allowed for whole conversations; over the bus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.message import ErrorInfo
from local.protocol.permission_messages import PermissionRequest, PermissionResult, PermissionVerb

ANSWER_SECONDS = 10.0
UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way


class GatekeeperAway(LocalError):
    """Nobody who gives leave takes part."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__("no gatekeeper answers: one takes part if `gatekeeper` is among the `participants`")


class PermissionRefused(LocalError):
    """What was asked for was not done; `kind` and text are the gatekeeper's."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = error.kind


class Permissions:
    """Asks the gatekeeper. `is_there()` says whether one was heard of lately."""

    publishes = (PermissionRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: PermissionVerb, of_user: str | None, **fields: Any) -> PermissionResult:
        """The answer to a `PermissionRequest` with these fields. Raises `PermissionRefused` and `GatekeeperAway`."""
        request = PermissionRequest(verb=verb, of_user=of_user, **fields)
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, PermissionResult, seconds)
        except RequestTimeout:
            raise GatekeeperAway from None
        if result.error is not None:
            raise PermissionRefused(result.error)
        return result
