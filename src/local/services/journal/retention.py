"""Removing the oldest entries, as far as no durable consumer needs them. In the caller's transaction."""

from __future__ import annotations

import sqlite3

from local.services.journal.changes import first_needed
from local.services.journal.consumers import consumer_names, registration
from local.services.journal.state import read_state, write_state

SLICE = 500  # entries removed in one transaction: appends wait no longer than for that
_ENTRY_OVERHEAD = 500  # bytes of header columns and indexes


def remove_slice(db: sqlite3.Connection, committed_before: float, max_bytes: int) -> int:
    """Remove the oldest entries that are too old or too many, at most `SLICE` of them; returns how many.

    Always a prefix, up to the first that is needed, so that a number missing in the middle is damage and nothing else.
    """
    state = read_state(db)
    last = state.last_number
    needed = min((first_needed(db, registration(db, name), last) for name in consumer_names(db)), default=last + 1)
    used = _used_bytes(db)
    excess, average = used - max_bytes, used / (last - state.first_number + 2)
    removed, cut = 0, 0
    for number, committed_at, size in db.execute(
        "SELECT number, committed_at, length(frame) FROM entries WHERE number < ? ORDER BY number LIMIT ?",
        (needed, SLICE),
    ):
        if committed_at >= committed_before and excess <= 0:
            break
        removed, cut = removed + 1, number
        excess -= max(size + _ENTRY_OVERHEAD, average)  # rather too much: what is still over is left to the next slice
    if removed:
        for condition in (
            "entries WHERE number",
            "gaps WHERE last",
            "tombstones WHERE up_to",
            "deliveries WHERE number",
        ):
            db.execute(f"DELETE FROM {condition} <= ?", (cut,))
        write_state(db, state.changed()._replace(first_number=cut + 1))
    return removed


def _used_bytes(db: sqlite3.Connection) -> int:
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
