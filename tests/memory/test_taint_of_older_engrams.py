"""Engrams stored before taint was recorded are tainted as the origins in their session say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.core.database import migrate
from local.memory.store import FILE_NAME, MIGRATIONS, EngramStore


@pytest.mark.parametrize(("origin", "tainted"), [("user", 0), ("assistant", 0), ("web", 1), ("tool", 1)])
async def test_memories_from_before_have_the_taint_that_the_origins_of_their_session_tell_of(
    tmp_path: Path, origin: str, tainted: int
) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as db, db:
        migrate(db, MIGRATIONS[: next(number for number, script in enumerate(MIGRATIONS) if "tainted" in script)])
        for number, (session, kind) in enumerate([("s1", "assistant"), ("s1", origin), ("s2", "assistant")]):
            db.execute(
                "INSERT INTO engrams (engram_id, query_id, respondent_id, session_id, user_id, query, answer, origin,"
                " asked_at, language, searchable, recalled) VALUES (?, ?, 'A', ?, 'owner', 'q', 'a', ?, 1.0, 'en', 1,"
                " '[]')",
                (f"e{number}", f"q{number}", session, kind),
            )
    async with EngramStore(tmp_path):
        pass
    with closing(sqlite3.connect(path)) as db:
        found = [row[0] for row in db.execute("SELECT tainted FROM engrams ORDER BY number")]
    assert found == [tainted, tainted, 0]
