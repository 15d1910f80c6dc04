"""What tools have changed, as a door sees it: asked over the bus of whoever changes files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.change_messages import ChangeRequest, ChangeResult, ChangeVerb
from local.protocol.envelope import Trace, new_id

ANSWER_SECONDS = 30.0
UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way


class FilesAway(LocalError):
    """Nobody takes part who changes files."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__(
            "the tools for files do not run: they take part if `files` is among the `participants` in system.yaml; if"
            " it is, they come back, so ask again"
        )


class ChangeRefused(LocalError):
    """What was asked was not done; `kind` and text are those of whoever changes files."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Changes:
    """`is_there()` says whether one was heard of lately who changes files."""

    publishes = (ChangeRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: ChangeVerb, **fields: Any) -> ChangeResult:
        """The answer to a `ChangeRequest` with these fields. Raises `FilesAway`, `ChangeRefused`, and `RequestTimeout`
        of one that is there and does not answer."""
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(ChangeRequest(verb=verb, **fields), ChangeResult, seconds, Trace(new_id()))
        except RequestTimeout:
            if self._is_there():
                raise
            raise FilesAway from None
        if result.error is not None:
            raise ChangeRefused(result.error.kind, result.error.message)
        return result
