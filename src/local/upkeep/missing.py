"""Which stores are missing, or have nothing in them, beside a journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from local.journal.store.schema import FILE_NAME as JOURNAL
from local.services.sqlite_file import connect_read_only


class Rebuildable(NamedTuple):
    """A store that can be made anew: its file in the data directory, a table without rows if it is empty, and whose it
    is. One that is `often_empty` is missing only where there is no file."""

    path: str
    table: str
    owner: str
    often_empty: bool = False


STORES: Mapping[str, Rebuildable] = {
    "conversation": Rebuildable("conversation.db", "turns", "generator"),
    "engrams": Rebuildable("engrams/engrams.db", "engrams", "memory"),
    "conversation_b": Rebuildable("conversation_b.db", "turns", "generator_b"),
    "ratings": Rebuildable("reward.db", "answers", "reward", often_empty=True),
}


def missing(data_dir: Path, owners: Collection[str]) -> list[str]:
    """The names in `STORES` of what these participants miss; none where there is no journal."""
    if not (data_dir / JOURNAL).exists():
        return []
    stores = {name: store for name, store in STORES.items() if store.owner in owners}
    return [name for name, store in stores.items() if _is_missing(data_dir / store.path, store)]


def _is_missing(path: Path, store: Rebuildable) -> bool:
    return not path.exists() or (not store.often_empty and _is_empty(path, store.table))


def _is_empty(path: Path, table: str) -> bool:
    try:
        with connect_read_only(path) as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
                return True
            return db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None
    except sqlite3.Error:
        return False  # damaged, or not to be read: its owner says so
