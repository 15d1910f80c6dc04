"""Collects what the judge of the memory needs, from the files of a system that has ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from chaos_harness.memory_judge import Evidence, Kept, Search
from chaos_harness.remembered import Remembered
from local.journal.store import JournalView
from local.memory.messages import MemoryIngested
from local.memory.store import FILE_NAME


def gather(data_dir: Path, published: Sequence[Remembered], searches: Sequence[Search]) -> Evidence:
    """Everything about these answers."""
    with JournalView(data_dir / "journal.db") as journal:
        told = [each.entry.correlation_id for each in journal.read_all(subjects=[MemoryIngested.subject])]
    directory = data_dir / "engrams"
    with closing(sqlite3.connect(directory / FILE_NAME)) as db:
        kept = db.execute("SELECT query_id, session_id, user_id, query, answer FROM engrams").fetchall()
        facts = db.execute("SELECT query_id, slot FROM facts JOIN engrams USING (number)").fetchall()
        vectors = dict(db.execute("SELECT query_id, key FROM vectors JOIN engrams USING (number)").fetchall())
        keys = frozenset(key for (key,) in db.execute("SELECT key FROM vectors"))
    return Evidence(published, [Kept(*row) for row in kept], told, facts, vectors, keys, searches)
