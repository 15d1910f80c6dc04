"""The journal seen from outside, whether its owner runs or not."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import NotOnRecord, StoreDamaged, StoreFailed
from local.journal import store as view
from local.journal.recovery import DamageReport
from local.journal.schema import Entry
from local.journal.store import JournalStats, JournalStore, JournalView, SessionSpan

Journal = Any  # the class is in conftest.py, which no test can import
Judge = Callable[..., Awaitable[DamageReport | None]]
MakeEntry = Callable[..., Entry]


async def test_what_its_owner_commits_is_seen_at_once(path: Path, store: JournalStore, entry: MakeEntry) -> None:
    with JournalView(path) as journal:
        assert journal.read(limit=9) == []
        await store.commit([entry(1), entry(2, subject="other"), entry(3)])
        assert [stored.number for stored in journal.read(limit=9, subjects=["query."])] == [1, 3]
        assert journal.read(limit=9) == await store.read(limit=9)


async def test_a_view_leaves_nothing_behind_that_its_owner_would_stumble_over(path: Path, entry: MakeEntry) -> None:
    async with JournalStore(path) as store:
        await store.commit([entry(1)])
    with JournalView(path) as journal:
        assert [stored.number for stored in journal.read(limit=9)] == [1]
    async with JournalStore(path) as store:
        assert store.damage is None
        assert await store.verify() is None


async def test_what_a_killed_owner_left_in_the_wal_is_seen_and_still_there_for_its_next_start(
    journal: Journal, tmp_path: Path, judge: Judge
) -> None:
    path = journal.put(tmp_path / "killed")
    with JournalView(path) as looked_at:
        assert {stored.number: stored.entry for stored in looked_at.read_all()} == journal.acknowledged
    assert await judge(path, journal.acknowledged) is None


async def test_an_open_view_does_not_keep_a_redacted_payload_in_the_wal(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1, payload=b"SECRET"), entry(2, payload=b"SECRET")])
    with JournalView(path) as journal:
        found = journal.read_all()
        next(found)
        journal.sessions()
        await store.redact_session("s")
        assert b"SECRET" not in b"".join(file.read_bytes() for file in path.parent.iterdir())


async def test_all_entries_come_slice_by_slice(
    path: Path, store: JournalStore, entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "SLICE", 3)
    await store.commit([entry(number, session=f"s{number % 2}") for number in range(1, 12)])
    with JournalView(path) as journal:
        assert [stored.number for stored in journal.read_all(session_id="s1")] == [1, 3, 5, 7, 9, 11]
        assert len(list(journal.read_all(after=2))) == 9


async def test_sessions_and_totals(path: Path, store: JournalStore, clock: Any, entry: MakeEntry) -> None:
    with JournalView(path) as journal:
        assert journal.count()[:3] == (0, 0, 0)
        await store.commit([entry(1, session="b"), entry(2, session="a"), entry(3, session=None)])
        clock.now = 2000.0
        await store.commit([entry(4, session="b")])
        assert journal.sessions() == [SessionSpan("b", 2, 1000.0, 2000.0), SessionSpan("a", 1, 1000.0, 1000.0)]
        size = sum(path.with_name(name).stat().st_size for name in ("journal.db", "journal.db-wal"))
        assert journal.count() == JournalStats(4, 1, 4, size)


async def test_a_damaged_entry_is_named_and_does_not_hold_up_its_owner(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1), entry(2), entry(3)])
    await store._database.run(lambda db: db.execute("UPDATE entries SET sender = 'evil' WHERE number = 2"))
    with JournalView(path) as journal:
        with pytest.raises(StoreDamaged) as damage:
            journal.read(limit=9)
        assert "row 2 of entries does not match its checksum; stop the system and start it again" in str(damage.value)
        await store.redact_session("another")
        assert [stored.number for stored in journal.read(limit=9, after=2)] == [3]


def test_what_is_no_journal_is_said_to_be_none(path: Path) -> None:
    with pytest.raises(NotOnRecord, match=r"journal\.db: no journal; the first start of a system"):
        JournalView(path).__enter__()
    assert not path.parent.exists()
    path.parent.mkdir()
    path.write_bytes(b"This is no database. " * 500)
    with pytest.raises(StoreDamaged, match=r"journal\.db: SQLite cannot read the file: file is not a database"):
        JournalView(path).__enter__()
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=7")
    with pytest.raises(StoreFailed, match="schema version 7 is newer than this program"):
        JournalView(path).__enter__()
