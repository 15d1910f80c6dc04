"""Whose turn it is: turns of one session in order, turns of different sessions side by side.

A turn may wait for those of its agents, which are one deeper. So each depth has places of its own: nobody waits for a
place that is held by who waits for them.
"""

from __future__ import annotations

MAX_WAITING_IN_ALL = 10_000


class WaitingLine:
    """Deciding only: ids in, ids out. Bounded for each session and in all."""

    def __init__(self, max_running: int, max_waiting: int) -> None:
        """One query of a session runs and `max_waiting` wait; of all sessions, `max_running` run at each depth."""
        self.max_running, self._max_waiting = max_running, max_waiting
        self._expected: dict[str, str] = {}  # query_id -> session_id, here as below
        self._waiting: dict[str, str] = {}  # in order of arrival
        self._running: dict[str, str] = {}
        self._depths: dict[str, int] = {}  # of those that wait or run, where it is not 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether one more could run."""
        return self._has_room(0)

    def expect(self, query_id: str, session_id: str) -> bool:
        """Keep a place for a query that is on its way into the line; False if there is none."""
        if (
            len(self.of(session_id)) > self._max_waiting
            or len(self._expected) + len(self._waiting) >= MAX_WAITING_IN_ALL
        ):
            return False
        self._expected[query_id] = session_id
        return True

    def of(self, session_id: str) -> list[str]:
        """The queries of a session that are expected, wait or run."""
        tables = (self._expected, self._waiting, self._running)
        return [query_id for table in tables for query_id, session in table.items() if session == session_id]

    def expect_no_more(self, query_id: str) -> None:
        """Give up a kept place."""
        self._expected.pop(query_id, None)

    def arrive(self, query_id: str, session_id: str, depth: int = 0) -> list[str]:
        """A query joins the end of the line, at the depth of its agent; returns the queries to start now."""
        self._expected.pop(query_id, None)
        if depth:
            self._depths[query_id] = depth
        self._waiting[query_id] = session_id
        return self._start()

    def done(self, query_id: str) -> list[str]:
        """A running query has ended; returns the queries to start now."""
        self._running.pop(query_id, None)
        self._depths.pop(query_id, None)
        return self._start()

    def leave(self, query_id: str) -> bool:
        """A query leaves the line before its turn; False if it was not waiting."""
        is_waiting = self._waiting.pop(query_id, None) is not None
        if is_waiting:
            self._depths.pop(query_id, None)
        return is_waiting

    def _start(self) -> list[str]:
        started = []
        busy = set(self._running.values())
        for query_id, session_id in list(self._waiting.items()):
            if session_id not in busy and self._has_room(self._depths.get(query_id, 0)):
                busy.add(session_id)
                self._running[query_id] = self._waiting.pop(query_id)
                started.append(query_id)
        return started

    def _has_room(self, depth: int) -> bool:
        if not self._depths:
            return len(self._running) < self.max_running
        at_depth = sum(self._depths.get(query_id, 0) == depth for query_id in self._running)
        return at_depth < self.max_running
