"""What can be found where a journal is to be opened, and what is done about each: one table."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from local.errors import StoreDamaged
from local.journal.store.high_water_mark import mark_path, read_mark
from local.journal.store.schema import MIGRATIONS, JournalState
from local.services.sqlite_file import connect_read_only, migrate, naming_damage

_MAGIC = b"SQLite format 3\0"


class Salvage(StrEnum):
    """Whether a folder of a damaged journal lies there whose salvage was interrupted."""

    NONE = "none"
    INTERRUPTED = "interrupted"


class File(StrEnum):
    """The journal's file and its WAL."""

    ABSENT = "absent"
    ONLY_WAL = "only its WAL"
    UNREADABLE = "unreadable"  # not one that SQLite would read as a database in WAL mode
    KNOWN = "of a known schema"
    NEWER = "of a newer schema"


class Mark(StrEnum):
    """The high-water mark."""

    ABSENT = "absent"
    UNREADABLE = "unreadable"
    UNUSED = "unused"  # nothing was acknowledged
    USED = "used"


class Look(StrEnum):
    """How much of the file has to be looked at: all of one that is small or suspect."""

    END = "end"
    ALL = "all"


class OpeningAction(StrEnum):
    """What is done."""

    RESUME = "resume the salvage"
    REFUSE = "refuse: a newer program's journal is no damage"
    CREATE = "create a journal"
    SALVAGE = "salvage what is sound"
    CHECK_END = "check the end, salvage if it is damaged"
    CHECK_ALL = "check everything, salvage if it is damaged"


class Situation(NamedTuple):
    """What was found."""

    salvage: Salvage
    file: File
    mark: Mark
    look: Look

    @classmethod
    def of(cls, path: Path, full_check_bytes: int | None, *, is_interrupted: bool) -> Self:
        """What lies at `path`. Raises `sqlite3.Error` and `OSError` for what can be read by nobody."""
        files = (path, path.with_name(f"{path.name}-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        is_all = full_check_bytes is None or size <= full_check_bytes or suspicion_path(path).exists()
        return cls(
            Salvage.INTERRUPTED if is_interrupted else Salvage.NONE,
            _file(*files),
            _mark(path),
            Look.ALL if is_all else Look.END,
        )


@dataclass(frozen=True, slots=True)
class _Row:
    action: OpeningAction
    file: Collection[File] = tuple(File)
    mark: Collection[Mark] = tuple(Mark)
    look: Collection[Look] = tuple(Look)
    salvage: Collection[Salvage] = (Salvage.NONE,)

    def holds(self, found: Situation) -> bool:
        return (
            found.salvage in self.salvage
            and found.file in self.file
            and found.mark in self.mark
            and found.look in self.look
        )


_MARKED = (Mark.UNUSED, Mark.USED)
TABLE = (  # of every situation one row holds; what a row does not name may be anything
    _Row(OpeningAction.RESUME, salvage=[Salvage.INTERRUPTED]),
    _Row(OpeningAction.REFUSE, file=[File.NEWER]),
    _Row(OpeningAction.CREATE, file=[File.ABSENT], mark=[Mark.ABSENT, Mark.UNUSED]),
    _Row(OpeningAction.SALVAGE, file=[File.ABSENT], mark=[Mark.UNREADABLE, Mark.USED]),
    _Row(OpeningAction.SALVAGE, file=[File.ONLY_WAL, File.UNREADABLE]),
    _Row(OpeningAction.SALVAGE, file=[File.KNOWN], mark=[Mark.ABSENT, Mark.UNREADABLE]),
    _Row(OpeningAction.CHECK_END, file=[File.KNOWN], mark=_MARKED, look=[Look.END]),
    _Row(OpeningAction.CHECK_ALL, file=[File.KNOWN], mark=_MARKED, look=[Look.ALL]),
)


def decide(found: Situation) -> OpeningAction:
    """What is done about a situation."""
    return next(row.action for row in TABLE if row.holds(found))


def suspicion_path(path: Path) -> Path:
    """The file that lies beside the journal at `path` when something is wrong with that."""
    return path.with_name(f"{path.name}.suspect")


def _mark(path: Path) -> Mark:
    state: JournalState | None = read_mark(mark_path(path))
    if state is None:
        return Mark.UNREADABLE if mark_path(path).exists() else Mark.ABSENT
    return Mark.USED if state.changes else Mark.UNUSED


def _file(path: Path, wal: Path) -> File:
    if not path.exists():
        return File.ONLY_WAL if wal.exists() else File.ABSENT
    with path.open("rb") as file:
        header = file.read(20)
    if not header.startswith(_MAGIC) or header[18:20] != b"\2\2":  # SQLite would leave it alone, or read another mode
        return File.UNREADABLE
    try:
        with connect_read_only(path) as db, naming_damage():
            return File.NEWER if _is_newer(db) else File.KNOWN
    except StoreDamaged:
        return File.UNREADABLE


def _is_newer(db: sqlite3.Connection) -> bool:
    """Whether a newer program has migrated this file. One flipped bit in the version alone is damage."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    known = len(MIGRATIONS)
    return version > known and not ((version ^ known).bit_count() == 1 and _schema(db) == _known_schema())


def _known_schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db, MIGRATIONS)
        return _schema(db)


def _schema(db: sqlite3.Connection) -> list[tuple[str, ...]]:
    return db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
