"""A copy of a data directory is sound, whatever is written to it meanwhile, and comes back whole."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from local.bus.blobs import BlobStore
from local.core.errors import BackupRefused
from local.generator.history import ConversationService, NewTurn
from local.journal.delivery import ConsumerChanges
from local.journal.schema import Entry
from local.journal.store import JournalStore
from local.run import upkeep as backup


def entry(number: int) -> Entry:
    envelope_id, frame = f"id-{number}", b"query.received\0{}\0{}"
    return Entry("query.received", envelope_id, "api", "i", number, f"q{number}", f"s{number}", 1.0, frame)


def asked(number: int) -> NewTurn:
    return NewTurn(f"q{number}", f"s{number}", None, f"id-{number}", "hello", json.dumps({"query": "hello"}))


@asynccontextmanager
async def running(data_dir: Path) -> AsyncIterator[tuple[JournalStore, ConversationService]]:
    async with (
        JournalStore(data_dir / "journal.db") as journal,
        ConversationService(data_dir / "conversation.db") as record,
    ):
        yield journal, record


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_a_copy_of_a_running_systems_data_is_sound_and_has_everything(data_dir: Path, tmp_path: Path) -> None:
    async with running(data_dir) as (journal, record):
        blob = BlobStore(data_dir / "blobs").put(b"large")
        await journal.commit([entry(1), entry(2)])
        await record.accept(asked(1))
        await record.turn("q1")
        number = backup.back_up(data_dir, tmp_path / "copy")
        await journal.commit([entry(3)])
    assert number == 3
    backup.restore(tmp_path / "copy", made(tmp_path / "new"))
    async with running(tmp_path / "new") as (journal, record):
        assert journal.damage is None
        assert await journal.verify() is None
        assert [stored.entry.envelope_id for stored in await journal.read(limit=9)] == ["id-1", "id-2"]
        assert await record.turn("q1") is not None
    assert BlobStore(tmp_path / "new" / "blobs").get(blob) == b"large"


async def test_what_was_done_while_the_copy_was_made_is_delivered_again(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_database = backup._copy_database
    async with running(data_dir) as (journal, _):
        await journal.commit([entry(1), entry(2)])
        await journal.register("generator", ["query.received"], floor=0)
        await journal.commit([], {"generator": ConsumerChanges(settled={1})})
        progress = backup._progress(data_dir / "journal.db")
        await journal.commit([], {"generator": ConsumerChanges(settled={2})})
        monkeypatch.setattr(backup, "_progress", lambda path: progress)
        monkeypatch.setattr(backup, "_copy_database", copy_database)
        backup.back_up(data_dir, tmp_path / "copy")
    async with JournalStore(tmp_path / "copy" / "journal.db") as journal:
        assert journal.damage is None
        assert (await journal.consumer("generator")).floor == 1


async def test_a_backup_goes_where_nothing_is_and_comes_from_where_something_is(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="has no journal"):
        backup.back_up(made(tmp_path / "empty"), tmp_path / "copy")
    async with running(data_dir):
        pass
    (made(tmp_path / "full") / "file").touch()
    with pytest.raises(BackupRefused, match="already exists"):
        backup.back_up(data_dir, tmp_path / "full")
    with pytest.raises(BackupRefused, match="is inside the data directory"):
        backup.back_up(data_dir, data_dir / "copy")


async def test_what_is_there_is_not_overwritten_but_moved_aside_where_that_is_wanted(
    data_dir: Path, tmp_path: Path
) -> None:
    async with running(data_dir):
        pass
    with pytest.raises(BackupRefused, match="is not a complete backup"):
        backup.restore(data_dir, made(tmp_path / "new"))
    backup.back_up(data_dir, tmp_path / "copy")
    (data_dir / "notes.txt").write_text("kept")
    with pytest.raises(BackupRefused, match="is not empty"):
        backup.restore(tmp_path / "copy", data_dir)
    aside = backup.restore(tmp_path / "copy", data_dir, replace=True)
    assert aside is not None
    assert (aside / "notes.txt").read_text() == "kept"
    assert not (data_dir / "notes.txt").exists()
    async with running(data_dir) as (journal, _):
        assert journal.damage is None


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
