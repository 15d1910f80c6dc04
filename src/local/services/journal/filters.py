"""What a reader of the journal may ask for, as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from local.services.journal.subjects import subject_clause


class Filters(TypedDict, total=False):
    """Which entries are wanted: those that match everything given.

    A subject that ends in a dot stands for its family. `since` (included) and `until` (not) are times of commit, in
    seconds since 1970.
    """

    after: int  # only higher numbers
    subjects: Sequence[str]
    session_id: str | None
    correlation_id: str | None
    sender: str | None
    since: float | None
    until: float | None


def where(filters: Filters, limit: int) -> tuple[str, list[Any]]:
    """SQL behind WHERE for at most `limit` entries in order, and its parameters."""
    clause, subjects = subject_clause(filters.get("subjects", ()))
    conditions = {
        "session_id = ?": filters.get("session_id"),
        "correlation_id = ?": filters.get("correlation_id"),
        "sender = ?": filters.get("sender"),
        "committed_at >= ?": filters.get("since"),
        "committed_at < ?": filters.get("until"),
    }
    used = {sql: value for sql, value in conditions.items() if value is not None}
    sql = " AND ".join(["number > ?", clause, *used])
    return f"{sql} ORDER BY number LIMIT ?", [filters.get("after", 0), *subjects, *used.values(), limit]
