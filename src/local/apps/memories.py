"""The memory as a door sees it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from local.apps.participant_client import ParticipantClient, ParticipantRefused
from local.errors import LocalError
from local.protocol.memory_messages import (
    OWNER,
    EditRecord,
    EngramRecord,
    EntryRecord,
    MemoryRequest,
    MemoryResult,
    MemoryVerb,
    OutcomeRecord,
)
from local.protocol.message import ErrorInfo

log = logging.getLogger(__name__)

EXPORT_PAGE = 50
EDITS_AT_ONCE, EDITED_BYTES = 15, 40_000  # of one request: what is larger would lie outside of its frame


class Memories(ParticipantClient):
    """Asks the memory for one user; `ParticipantRefused` is not_found for an engram that is none of the user's."""

    participant = "memory"
    answer_seconds = 20.0  # longer than the memory waits for the journal, so that its reason is heard
    publishes = (MemoryRequest,)

    async def ask(self, verb: MemoryVerb, user_id: str, **fields: Any) -> MemoryResult:
        """The answer to a `MemoryRequest` with these fields."""
        return await self._request(MemoryRequest(verb=verb, **fields), MemoryResult, user_id)

    async def engram(self, verb: MemoryVerb, user_id: str, engram_id: str) -> tuple[EngramRecord, MemoryResult]:
        """An engram after get, pin or unpin, or as it was before delete; and the whole answer."""
        result = await self.ask(verb, user_id, engram_id=engram_id)
        if not result.engrams:
            raise ParticipantRefused(ErrorInfo(kind="not_found", message=f"there is no engram {engram_id}"))
        return result.engrams[0], result

    async def entries(self, user_id: str) -> list[EntryRecord]:
        """The facts and notes of a user that hold, page by page."""
        found, cursor = list[EntryRecord](), ""
        while True:
            page = await self.ask("entries", user_id, cursor=cursor)
            found += page.entries
            cursor = page.cursor
            if not cursor:
                return found

    async def edit(self, user_id: str, edits: list[EditRecord], *, applies: bool) -> tuple[OutcomeRecord, ...]:
        """What becomes of edits of those, asked for in parts that travel within a frame."""
        outcomes = list[OutcomeRecord]()
        for part in _parts(edits):
            outcomes += (await self.ask("edit", user_id, edits=part, applies=applies)).outcomes
        return tuple(outcomes)

    async def repeated_in(self, session_id: str) -> tuple[str, ...] | None:
        """The engrams that had recalled something of a session; None if no memory answers that knows it."""
        if not self.is_expected:
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


def _parts(edits: list[EditRecord]) -> Iterator[tuple[EditRecord, ...]]:
    part, size = list[EditRecord](), 0
    for edit in edits:
        more = len(edit.text.encode())
        if part and (len(part) == EDITS_AT_ONCE or size + more > EDITED_BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(edit)
        size += more
    if part:
        yield tuple(part)
