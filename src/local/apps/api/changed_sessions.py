"""The sessions that have changed, looked up for those who watch the list of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from local.apps.session import LoCALSession
from local.errors import LocalError, RequestTimeout

log = logging.getLogger(__name__)

MAX_ROWS = 1000  # in one answer

Row = dict[str, Any]


class ChangedSessions:
    """Asks the generator for the rows of all sessions that have changed since it last did, once at a time, and hands
    each on by `tell(row)`."""

    def __init__(self, session: LoCALSession, tell: Callable[[Row], object]) -> None:
        self._session, self._tell = session, tell
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    def add(self, session_id: str) -> None:
        """Something has happened in a session."""
        self._waiting.add(session_id)
        self._changed.set()

    async def run(self) -> None:
        """Look up until cancelled. While the generator is away, what has changed waits for it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            waiting = sorted(self._waiting)
            asked, self._waiting = waiting[:MAX_ROWS], set(waiting[MAX_ROWS:])
            if self._waiting:
                self._changed.set()
            try:
                found = await self._session.look_up("sessions", among=asked, limit=MAX_ROWS)
            except RequestTimeout:  # which is seconds later
                self._waiting.update(asked)
                self._changed.set()
            except LocalError as error:
                log.warning("changed sessions: %s", error)
            else:
                for row in found["sessions"]:
                    self._tell(row)
