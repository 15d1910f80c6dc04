"""The memory as a door sees it: asked over the bus, and perhaps not there."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.envelope import Trace, new_id
from local.protocol.memory_messages import OWNER, EngramRecord, MemoryRequest, MemoryResult, MemoryVerb

log = logging.getLogger(__name__)

ANSWER_SECONDS = 20.0  # longer than the memory waits for the journal, so that its reason is heard
UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way
EXPORT_PAGE = 50


class MemoryAway(LocalError):
    """No memory takes part."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__(
            "the memory does not run: it takes part if `memory` is among the `participants` in system.yaml; if it is,"
            " it comes back, so ask again"
        )


class MemoryRefused(LocalError):
    """The memory did not do what it was asked; `kind` and text are its own."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Memories:
    """Asks the memory for one user. `is_there()` says whether one was heard of lately.

    Every method raises `MemoryAway`, `MemoryRefused` (kind not_found for an engram that is none of the user's), and
    `RequestTimeout` of a memory that is there and does not answer.
    """

    publishes = (MemoryRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: MemoryVerb, user_id: str, **fields: Any) -> MemoryResult:
        """The answer to a `MemoryRequest` with these fields."""
        request = MemoryRequest(verb=verb, **fields)
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, MemoryResult, seconds, Trace(new_id(), user_id=user_id))
        except RequestTimeout:
            if self._is_there():
                raise
            raise MemoryAway from None
        if result.error is not None:
            raise MemoryRefused(result.error.kind, result.error.message)
        return result

    async def engram(self, verb: MemoryVerb, user_id: str, engram_id: str) -> tuple[EngramRecord, MemoryResult]:
        """An engram after get, pin or unpin, or as it was before delete; and the whole answer."""
        result = await self.ask(verb, user_id, engram_id=engram_id)
        if not result.engrams:
            raise MemoryRefused("not_found", f"there is no engram {engram_id}")
        return result.engrams[0], result

    async def repeated_in(self, session_id: str) -> tuple[str, ...] | None:
        """The engrams that had recalled something of a session; None if no memory answers that knows it."""
        if not self._is_there():
            return None
        try:
            return (await self.ask("repeated", OWNER, of_session=session_id)).repeated_in
        except LocalError as error:
            log.warning("which memories repeat something of session %s is not known: %s", session_id, error)
            return None

    async def export(self, user_id: str) -> AsyncGenerator[str, None]:
        """Everything that is kept of a user, as lines of JSON, page by page."""
        cursor = ""
        while True:
            page = await self.ask("export", user_id, cursor=cursor, limit=EXPORT_PAGE)
            yield "".join(f"{line}\n" for line in page.lines)
            cursor = page.cursor
            if not cursor:
                return
