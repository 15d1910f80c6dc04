"""What was used since midnight, read off the record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime

from local.apps.session import LoCALSession
from local.protocol.journal_messages import JournalRead
from local.protocol.messages import ResponseGeneration
from local.protocol.model_used import ModelUsed
from local.queries.recorded_query import RecordedMessage
from local.queries.usage_ledger import UsageLedger

PIECE = 100  # messages that are read at a time
END = 2**62  # a number behind all messages
HOUR = 3600.0
_COUNTED = (ResponseGeneration.subject, ModelUsed.subject)


def begin_of_day(at: float) -> float:
    """The last midnight of this machine's time zone, in seconds since 1970."""
    return datetime.fromtimestamp(at).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def end_of_day(at: float) -> float:
    """The next midnight of this machine's time zone, in seconds since 1970."""
    return begin_of_day(begin_of_day(at) + 36 * HOUR)  # days of 23 and 25 hours, too


class DayLedger:
    """All that was used today by what is on record; what is deleted afterwards stays counted. `clock` gives seconds
    since 1970."""

    def __init__(self, session: LoCALSession, clock: Callable[[], float] = time.time) -> None:
        self._session, self._clock = session, clock
        self._lock = asyncio.Lock()
        self._ledger, self._since, self._read_to = UsageLedger(), 0.0, 0

    async def read(self) -> UsageLedger:
        """Up to now. Raises `RequestTimeout` while there is no journal, and `RecordUnreadable`."""
        async with self._lock:
            since = begin_of_day(self._clock())
            if since != self._since:
                self._ledger, self._since, self._read_to = UsageLedger(), since, 0
            await (self._go_on() if self._read_to else self._begin())
            return self._ledger

    async def _begin(self) -> None:
        """The latest first, up to midnight."""
        ledger, read_to = UsageLedger(), 0
        async for message in self._session.entries(JournalRead(subjects=_COUNTED, before=END, limit=PIECE)):
            if message.entry.committed_at < self._since:
                break
            read_to = max(read_to, message.entry.number)
            await self._count(message, ledger)
        self._ledger, self._read_to = ledger, read_to

    async def _go_on(self) -> None:
        async for message in self._session.entries(JournalRead(subjects=_COUNTED, after=self._read_to, limit=PIECE)):
            await self._count(message, self._ledger)
            self._read_to = message.entry.number

    async def _count(self, message: RecordedMessage, ledger: UsageLedger) -> None:
        if not message.entry.redacted:
            ledger.hear(message.envelope, await self._session.payload(message), message.entry.committed_at)
