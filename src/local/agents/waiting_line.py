"""Whose turn it is: turns of one session in order, turns of different sessions side by side."""

from __future__ import annotations

from collections import Counter

MAX_WAITING_IN_ALL = 10_000


class WaitingLine:
    """Deciding only: ids in, ids out. Bounded for each session and in all."""

    def __init__(self, max_running: int, max_waiting: int) -> None:
        self._max_running, self._max_waiting = max_running, max_waiting
        self._waiting: dict[str, str] = {}  # query_id -> session_id, in order of arrival
        self._running: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._waiting or query_id in self._running

    def is_full_for(self, session_id: str) -> bool:
        """Whether another query of this session would have to be refused."""
        waiting = Counter(self._waiting.values())[session_id] if self._waiting else 0
        return waiting >= self._max_waiting or len(self._waiting) >= MAX_WAITING_IN_ALL

    def arrive(self, query_id: str, session_id: str) -> list[str]:
        """A query joins the end of the line; returns the queries to start now."""
        self._waiting[query_id] = session_id
        return self._start()

    def done(self, query_id: str) -> list[str]:
        """A running query has ended; returns the queries to start now."""
        self._running.pop(query_id, None)
        return self._start()

    def leave(self, query_id: str) -> bool:
        """A query leaves the line before its turn; False if it was not waiting."""
        return self._waiting.pop(query_id, None) is not None

    def _start(self) -> list[str]:
        started = []
        busy = set(self._running.values())
        for query_id, session_id in list(self._waiting.items()):
            if len(self._running) >= self._max_running:
                break
            if session_id not in busy:
                busy.add(session_id)
                self._running[query_id] = self._waiting.pop(query_id)
                started.append(query_id)
        return started
