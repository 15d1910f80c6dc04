"""How users have named their sessions, and which they have pinned. In the caller's transaction."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from local.services.turn_pages import head_of


class Labels(NamedTuple):
    """Without `title` a session is called as its first query. `changed_at` is seconds since 1970, 0 for never."""

    title: str | None = None
    pinned: bool = False
    changed_at: float = 0.0


def labels_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> Labels:
    """Raises `NotOnRecord` for a session that there is not."""
    head_of(db, respondent_id, session_id)
    sql = "SELECT title, pinned, changed_at FROM labels WHERE session_id = ? AND respondent_id = ?"
    row = db.execute(sql, (session_id, respondent_id)).fetchone()
    return Labels() if row is None else Labels(row["title"], bool(row["pinned"]), row["changed_at"])


def keep_labels(db: sqlite3.Connection, respondent_id: str, session_id: str, labels: Labels) -> None:
    """Store them, unless there are later ones, or the session is gone."""
    db.execute(
        "INSERT INTO labels SELECT :session, :own, :title, :pinned, :at WHERE EXISTS (SELECT 1 FROM turns"
        " WHERE session_id = :session AND respondent_id = :own UNION SELECT 1 FROM branches"
        " WHERE session_id = :session AND respondent_id = :own)"
        " ON CONFLICT DO UPDATE SET title = excluded.title, pinned = excluded.pinned, changed_at = excluded.changed_at"
        " WHERE excluded.changed_at >= changed_at",
        {"session": session_id, "own": respondent_id, "title": labels.title, "pinned": labels.pinned,
         "at": labels.changed_at},
    )  # fmt: skip
