"""Before a journal is used: a new one is made, an interrupted salvage finished, a damaged one replaced."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from local.services.database import store_failure
from local.services.journal.build import build_journal
from local.services.journal.check import find_damage
from local.services.journal.high_water_mark import HighWaterMark, create_mark, read_mark, sync_folder
from local.services.journal.salvage import DamageReport, mark_path, resume_salvage, salvage
from local.services.journal.state import State


def open_soundly(path: Path, full_check_bytes: int | None) -> tuple[HighWaterMark, DamageReport | None]:
    """Leave a sound journal at `path`; returns its mark and what had to be done about damage.

    A file of more than `full_check_bytes` is checked at its end only; None is no limit. Raises `StoreFailed` for what
    is no damage: no permission, no space, another owner.
    """
    try:
        report = resume_salvage(path)
        if report is None:
            report = _examine(path, full_check_bytes)
        return HighWaterMark(mark_path(path)), report
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def _examine(path: Path, full_check_bytes: int | None) -> DamageReport | None:
    wal = path.with_name(f"{path.name}-wal")
    mark = read_mark(mark_path(path))
    is_unused = not mark.changes if mark else not mark_path(path).exists()
    if is_unused and not path.exists() and not wal.exists():
        _create(path)
        return None
    size = sum(file.stat().st_size for file in (path, wal) if file.exists())
    fault = find_damage(path, mark, in_full=full_check_bytes is None or size <= full_check_bytes)
    return salvage(path, fault) if fault else None


def _create(path: Path) -> None:
    """The mark first: one that says that nothing was acknowledged makes no file missing after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    create_mark(mark_path(path), State())
    half_made = path.with_name(f"{path.name}.new")
    build_journal(half_made, None, State())
    half_made.replace(path)
    sync_folder(path.parent)
