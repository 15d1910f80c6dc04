"""What was used and done, as it stands on record: asked of the journal, and kept as sums."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from local.apps.log_levels import LEVELS
from local.apps.log_reader import LogSelection, read_log
from local.apps.session import LoCALSession
from local.config import load_system
from local.config_models import load_models
from local.environment import environment
from local.protocol.cron_messages import CronRun
from local.protocol.journal_messages import JournalRead
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import ResponseGeneration, SessionDeleted
from local.protocol.model_used import ModelUsed
from local.queries.activity import activity_of, subjects_of
from local.queries.usage_ledger import ModelPrice, UsageLedger

PIECE = 100  # messages that are read at a time
END = 2**62  # a number behind all messages
_COUNTED = (ResponseGeneration.subject, CronRun.subject, ModelUsed.subject)
_DELETED = (SessionDeleted.subject, MemoryDeleted.subject)


class Accounts:
    """What is on record up to some number is read once; after a deletion all of it anew. Every coroutine raises
    `RequestTimeout` while there is no journal, and `RecordUnreadable`."""

    def __init__(self, session: LoCALSession, data_dir: Path, layers: Sequence[Path]) -> None:
        """`layers` are the folders of settings, which are read when something is asked for."""
        self._session, self._data_dir, self._layers = session, data_dir, layers
        self._lock = asyncio.Lock()
        self._ledger, self._read_to, self._begun_at = UsageLedger(), 0, time.time()

    def prices(self) -> dict[str, ModelPrice]:
        """What models cost, by name. Raises `ConfigError`."""
        prices = load_models(self._layers).prices
        return {name: ModelPrice(price.prompt, price.completion) for name, price in prices.items()}

    def logged(
        self, participants: Sequence[str], level: str, since: float, query_id: str, limit: int
    ) -> list[dict[str, Any]]:
        """The last lines of the log that are wanted. Raises `ConfigError`."""
        path = load_system(self._layers, {}, environment()).log_path(self._data_dir)
        wanted = LogSelection(frozenset(participants), LEVELS.index(level), since or None, query_id)
        records = read_log(path) if path is not None else ()
        return [record.as_json() for record in deque(filter(wanted.wants, records), limit)]

    async def ledger(self) -> UsageLedger:
        """All that was used up to now, by what is still on record."""
        async with self._lock:
            if not await self._read_on():
                self._ledger, self._read_to, self._begun_at = UsageLedger(), 0, time.time()
                await self._read_on()
            return self._ledger

    async def _read_on(self) -> bool:
        """False where something may have been counted that has been deleted since."""
        async for message in self._session.entries(
            JournalRead(subjects=(*_COUNTED, *_DELETED), after=self._read_to, limit=PIECE)
        ):
            if message.envelope.subject in _DELETED:
                if message.entry.committed_at > self._begun_at and self._read_to:
                    return False
            elif not message.entry.redacted:
                payload = await self._session.payload(message)
                self._ledger.hear(message.envelope, payload, message.entry.committed_at)
            self._read_to = message.entry.number
        return True

    async def activity(
        self, kinds: frozenset[str], session_id: str | None, since: float, before: int | None = None
    ) -> AsyncIterator[tuple[int, str | None, dict[str, Any]]]:
        """What was done, the latest first: number on record, whose it is, and the line."""
        request = JournalRead(subjects=subjects_of(kinds), session_id=session_id, before=before or END, limit=PIECE)
        async for message in self._session.entries(request):
            at = message.entry.committed_at
            if at < since:
                return
            payload = await self._session.payload(message)
            yield message.entry.number, message.envelope.user_id, activity_of(message.envelope, payload, at)
