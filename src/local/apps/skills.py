"""The skills as a door sees them: asked over the bus of whoever holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from local.apps.changes import ANSWER_SECONDS, UNSEEN_SECONDS, FilesAway
from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.envelope import Trace, new_id
from local.protocol.skill_messages import SkillRequest, SkillResult


class SkillRefused(LocalError):
    """There is no such skill, or it cannot be used; `kind` and text are those of whoever holds them."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Skills:
    """`is_there()` says whether one was heard of lately who holds them: the tools for files do."""

    publishes = (SkillRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: Literal["list", "show"], name: str = "") -> SkillResult:
        """The answer to a `SkillRequest`. Raises `FilesAway`, `SkillRefused`, and `RequestTimeout` of one that is there
        and does not answer."""
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(SkillRequest(verb=verb, name=name), SkillResult, seconds, Trace(new_id()))
        except RequestTimeout:
            if self._is_there():
                raise
            raise FilesAway from None
        if result.error is not None:
            raise SkillRefused(result.error.kind, result.error.message)
        return result
