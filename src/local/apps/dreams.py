"""The dreamer as a door sees it: asked over the bus, and perhaps not there."""

from __future__ import annotations

from collections.abc import Callable

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.dream_messages import DreamRequest, DreamResult, DreamVerb
from local.protocol.envelope import Trace, new_id

ANSWER_SECONDS = 10.0
UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way


class DreamerAway(LocalError):
    """No dreamer takes part."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__("no dreamer answers: one takes part if `dreamer` is among the `participants` in system.yaml")


class DreamsRefused(LocalError):
    """The dreamer did not do what it was asked; `kind` and text are its own."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Dreams:
    """Asks the dreamer. `is_there()` says whether one was heard of lately."""

    publishes = (DreamRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: DreamVerb) -> DreamResult:
        """How it is then. Raises `DreamsRefused` and `DreamerAway`."""
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(DreamRequest(verb=verb), DreamResult, seconds, Trace(new_id()))
        except RequestTimeout:
            raise DreamerAway from None
        if result.error is not None:
            raise DreamsRefused(result.error.kind, result.error.message)
        return result
