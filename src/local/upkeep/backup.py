"""A sound copy of a data directory, also of one that a system runs on, and its way back.

Copying files one after the other tears them: SQLite's own backup takes each database at one moment. The journal comes
after the other databases, so that it has what they have; what consumers have acknowledged is as it was before them, so
that what it has beyond them is delivered again. The rest, large fields and attachments, comes last: whatever refers to
it was copied before.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

from local.errors import BackupRefused
from local.journal.store.high_water_mark import create_mark, mark_path, sync_folder
from local.journal.store.schema import COLUMNS, read_state
from local.journal.store.schema import FILE_NAME as JOURNAL
from local.services.sqlite_file import connect_read_only, naming_damage, store_failure

MANIFEST = "backup.json"
LOCK = "lock"
# Held by a process, made anew or pulled anew, of one run or machine alone, or the files that one works on.
_LEFT_OUT = (
    *("lock", "owner.lock", "vectors", "logs", "senders", "models", "api_token", "grants", "secrets", "workspace"),
    MANIFEST,
)
_STAYS = (LOCK, "models", "secrets", "workspace")
_PROGRESS = ("consumers", "deliveries")
_PARTS = ("-wal", "-shm", ".mark", ".part", ".new", ".suspect")  # of a database that is copied, or half made


def back_up(data_dir: Path, target: Path) -> int:
    """Copy a data directory to a folder, which must not be there; returns how many files that were.

    The folder is there once all of it is on the disk. Raises `BackupRefused`, `StoreFailed`, `StoreDamaged`.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} is there already; name a folder that is not")
    if not (data_dir / JOURNAL).exists():
        raise BackupRefused(f"{data_dir} holds no journal: there is nothing to copy")
    if target.resolve().is_relative_to(data_dir.resolve()):
        raise BackupRefused(f"{target} lies in the data directory; name a folder elsewhere")
    half_made = target.with_name(f"{target.name}.part")
    shutil.rmtree(half_made, ignore_errors=True)
    try:
        half_made.mkdir(parents=True, mode=0o700)
        number = _copy_all(data_dir, half_made)
        (half_made / MANIFEST).write_text(json.dumps({"made_at": time.time(), "of": str(data_dir), "files": number}))
        half_made.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise store_failure(target, error, what="cannot be written: ") from None
    return number


def restore(source: Path, data_dir: Path, *, replace: bool = False) -> Path | None:
    """Put a backup in the place of a data directory on which nothing runs. With `replace` what is there is moved
    aside; returns whereto. Raises `BackupRefused`, `StoreFailed`.
    """
    if not (source / MANIFEST).exists():
        raise BackupRefused(f"{source} is no whole backup: `local2 backup` writes {MANIFEST} into it at the end")
    present = [path for path in data_dir.iterdir() if path.name not in _STAYS]
    if present and not replace:
        raise BackupRefused(f"{data_dir} is not empty; --force moves what is there aside")
    try:
        aside = _move_aside(data_dir, present) if present else None
        for path in _files(source):
            _copy_file(path, data_dir / path.relative_to(source))
        for path in sorted(source.rglob("*.mark")):
            _copy_file(path, data_dir / path.relative_to(source))
    except OSError as error:
        raise store_failure(data_dir, error, what="cannot be restored: ") from None
    return aside


def _copy_all(data_dir: Path, target: Path) -> int:
    progress = _progress(data_dir / JOURNAL)
    files = list(_files(data_dir))
    databases = sorted((path for path in files if path.suffix == ".db"), key=lambda path: (path.name == JOURNAL, path))
    for path in databases:
        _copy_database(path, target / path.relative_to(data_dir))
    with closing(sqlite3.connect(target / JOURNAL, isolation_level=None)) as db:
        _set_progress(db, progress)
        create_mark(mark_path(target / JOURNAL), read_state(db))
    others = [path for path in _files(data_dir) if path.suffix != ".db"]
    for path in others:
        with suppress(FileNotFoundError):  # deleted meanwhile
            _copy_file(path, target / path.relative_to(data_dir))
    return len(databases) + len(others)


def _progress(journal: Path) -> Mapping[str, list[tuple[Any, ...]]]:
    """What each consumer has done."""
    try:
        with naming_damage(), connect_read_only(journal) as db:
            db.execute("BEGIN")
            return {table: db.execute(f"SELECT {COLUMNS[table]} FROM {table}").fetchall() for table in _PROGRESS}
    except sqlite3.Error as error:
        raise store_failure(journal, error, what="cannot be copied: ") from None


def _set_progress(db: sqlite3.Connection, progress: Mapping[str, list[tuple[Any, ...]]]) -> None:
    db.execute("BEGIN")
    for name, *_ in progress["consumers"]:
        db.execute("DELETE FROM deliveries WHERE consumer = ?", (name,))
    for table in _PROGRESS:
        marks = ", ".join("?" * len(COLUMNS[table].split(",")))
        db.executemany(f"INSERT OR REPLACE INTO {table} ({COLUMNS[table]}) VALUES ({marks})", progress[table])
    db.execute("COMMIT")


def _files(folder: Path) -> Iterator[Path]:
    """What is worth a copy."""
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT or path.name.endswith(_PARTS) or ".damaged-" in path.name:
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _copy_database(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with naming_damage(), connect_read_only(source) as db, closing(sqlite3.connect(target)) as copy:
            db.backup(copy)
            copy.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise store_failure(source, error, what="cannot be copied: ") from None
    _sync(target)


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copy2(source, target)
    _sync(target)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    path.chmod(0o600)


def _move_aside(data_dir: Path, present: list[Path]) -> Path:
    names = (data_dir.with_name(f"{data_dir.name}.before-restore-{number}") for number in count(1))
    aside = next(name for name in names if not name.exists())
    aside.mkdir(mode=0o700)
    for path in present:
        path.replace(aside / path.name)
    return aside
