"""Which stores are missing, or have nothing in them, beside a journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from local.journal.store.schema import FILE_NAME as JOURNAL
from local.services.sqlite_file import connect_read_only


class Rebuildable(NamedTuple):
    """A store that can be made anew: its file in the data directory, and a table without rows if it is empty."""

    path: str
    table: str


STORES: Mapping[str, Rebuildable] = {
    "conversation": Rebuildable("conversation.db", "turns"),
    "engrams": Rebuildable("engrams/engrams.db", "engrams"),
}


def missing(data_dir: Path) -> list[str]:
    """The names in `STORES`; none where there is no journal."""
    if not (data_dir / JOURNAL).exists():
        return []
    return [name for name, store in STORES.items() if _is_empty(data_dir / store.path, store.table)]


def _is_empty(path: Path, table: str) -> bool:
    if not path.exists():
        return True
    try:
        with connect_read_only(path) as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
                return True
            return db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None
    except sqlite3.Error:
        return False  # damaged, or not to be read: its owner says so
