"""The opening of a journal: a new one is created, an interrupted salvage finished, a damaged one replaced.

The problem. Every acknowledged message must exist, or be reported as in doubt: SQLite alone does not notice a file
whose end is missing, an older copy put in its place, or a changed byte in a row.

The idea. Every row has a checksum, numbers have no gaps but those on record, and a small file beside the journal (the
high-water mark, `schema.HighWaterMark`) says how many changes were acknowledged, with a digest over all entries. A
journal whose state does not reach its mark has lost its end; one with another digest is another journal. One table
(`TABLE`) says for every combination of file, mark and interrupted salvage what is done.

Salvage. The damaged files are moved aside, whole, to `<journal>.damaged-<n>`; the sound rows go into a fresh journal
under their old numbers, tombstones of deleted messages are carried out, and numbering continues above everything that
may have been acknowledged. Lost ranges are reported once and stay on record as gaps.

Invariants. Any step can be the last before a crash: a folder `<journal>.damaged-<n>` with a reason and without a
finished report is a salvage that the next start takes up, and no fresh journal is in place before its report is
written. No number is given out twice. A newer schema, a missing permission or a full disk is no damage: the file stays
as it is.

Not done. Repairing the file in place: a crash in between would leave neither file. Trusting SQLite's integrity check
alone: it knows neither lost ends nor exchanged files.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

from local.core.database import connect_read_only, migrate, naming_damage, store_failure
from local.core.errors import StoreDamaged, StoreTooNew
from local.journal.schema import (
    COLUMNS,
    MIGRATIONS,
    HighWaterMark,
    JournalState,
    bury,
    create_mark,
    is_sound,
    mark_path,
    put,
    read_mark,
    read_state,
    rows,
    sync_folder,
    write_state,
)

# Whether a journal is in the state that was last acknowledged. Reads only; the file and its WAL stay unchanged.

TAIL = 20_000  # more entries than a WAL holds between two checkpoints
_MAGIC = b"SQLite format 3\0"
Ranges = list[tuple[int, int]]


def find_damage(path: Path, mark: JournalState | None, *, in_full: bool) -> str | None:
    """Return the damage of the journal at `path`, in words; None if it is sound.

    `in_full` reads every page and every row (about 50 MB/s), otherwise the state and the last `TAIL` entries. Raises
    `StoreFailed` for a file that cannot be read for another reason than damage.
    """
    if mark is None:
        return "the high-water mark is missing or unreadable"
    try:
        if fault := _fault_of_header(path):
            return fault
        with connect_read_only(path) as db, naming_damage():
            db.execute("BEGIN")  # one snapshot for all that follows
            return _fault(db, mark, in_full=in_full)
    except StoreDamaged as error:
        return str(error)
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def missing(numbers: Iterable[int], first: int, last: int) -> Ranges:
    """The ranges between `first` and `last`, both included, that the ascending `numbers` leave out."""
    ranges: Ranges = []
    expected = first
    for number in numbers:
        if number > expected:
            ranges.append((expected, number - 1))
        expected = number + 1
    return [*ranges, (expected, last)] if expected <= last else ranges


def _fault_of_header(path: Path) -> str | None:
    """Return the fault of a file header that SQLite would silently accept: an empty file, an older or unknown mode."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except FileNotFoundError:
        return "the file is missing"
    if not header.startswith(_MAGIC) or header[18:20] != b"\2\2":
        return "the file does not begin as a database in WAL mode does"
    return None


def _fault(db: sqlite3.Connection, mark: JournalState, *, in_full: bool) -> str | None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 1 <= version <= len(MIGRATIONS):
        return f"its schema version is {version}; this program knows 1 to {len(MIGRATIONS)}"
    if in_full:
        (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()  # quick_check looks into no index
        if verdict != "ok":
            return f"SQLite's integrity check says: {verdict}"
        for table in COLUMNS:
            if table != "entries":
                for _ in rows(db, table):
                    pass
    state = read_state(db)
    if state.changes < mark.changes:
        return f"it ends at entry {state.last_number}, but entry {mark.last_number} or a later change was acknowledged"
    if state.changes == mark.changes and state != mark:
        return "its high-water mark belongs to another journal"
    first = state.first_number if in_full else max(state.first_number, state.last_number - TAIL + 1)
    return _fault_of_numbers(db, first, state.last_number)


def _fault_of_numbers(db: sqlite3.Connection, first: int, last: int) -> str | None:
    known = [(start, end) for start, end in rows(db, "gaps")]
    for start, end in missing(_numbers(db, first), first, last):
        if not any(low <= start and end <= high for low, high in known):
            return f"entries {start} to {end} are missing"
    return None


def _numbers(db: sqlite3.Connection, first: int) -> Iterator[int]:
    for number, *_ in rows(db, "entries", "number >= ? ORDER BY number", (first,)):
        yield number


# A new journal file: empty, or with the sound rows of a damaged one.

UNKNOWN_TAIL = 2**20  # numbers skipped if it is unknown how many had been assigned


@dataclass(frozen=True, slots=True)
class Built:
    """A new journal: its state, the number of entries in it, and the ranges of numbers that were lost just now."""

    state: JournalState
    salvaged: int
    lost: Ranges


def build_journal(path: Path, broken: Path | None, mark: JournalState | None) -> Built:
    """Write a journal at `path`, over an unfinished one, from the sound rows of `broken`, which may be missing.

    `mark` is the broken one's high-water mark, None if it could not be read. The file is on the disk, complete and in
    WAL mode, when this returns. Raises `sqlite3.Error` and `OSError` if it cannot be written.
    """
    for half_made in path.parent.glob(f"{path.name}*"):
        half_made.unlink()
    with ExitStack() as stack:
        source = stack.enter_context(connect_read_only(broken)) if broken and broken.exists() else None
        if source:
            source.execute("PRAGMA writable_schema=ON")  # the tables can be read though an index is described badly
        db = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
        # A crash needs no rollback in a file that is not used before it is complete.
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # otherwise the file would keep its size after removals
        db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=ON")
        migrate(db, MIGRATIONS)
        db.execute("BEGIN")
        built = _fill(db, source, mark) if source else _begin(db, mark, consumers_in_doubt=broken is not None)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=WAL")
    with path.open("r+b") as file:
        os.fsync(file.fileno())
    return built


def _begin(db: sqlite3.Connection, mark: JournalState | None, *, consumers_in_doubt: bool) -> Built:
    """Begin a journal without entries; the mark says what it should have contained."""
    state = _state_after(mark, None, 0)._replace(consumers_in_doubt=consumers_in_doubt)
    return _finish(db, state, [], [])


def _fill(db: sqlite3.Connection, source: sqlite3.Connection, mark: JournalState | None) -> Built:
    consumers, has_all_consumers = sound_rows(source, "consumers")
    found = next((JournalState(*row[1:]) for row in sound_rows(source, "state")[0]), None)
    state = _state_after(mark, found, highest_number(source))
    for row in consumers:
        put(db, "consumers", row)
    for table in ("deliveries", "servers"):
        for row in sound_rows(source, table)[0]:
            put(db, table, row)
    numbers = []
    for row in sound_entries(source, state.first_number, state.last_number):
        put(db, "entries", row)
        numbers.append(row[0])
    for kind, identifier, up_to in sound_rows(source, "tombstones")[0]:
        put(db, "tombstones", (kind, identifier, up_to))
        bury(db, kind, identifier, up_to)
    gaps = [(first, last) for first, last in sound_rows(source, "gaps")[0]]
    in_doubt = not has_all_consumers or bool(found and found.consumers_in_doubt)
    return _finish(db, state._replace(consumers_in_doubt=in_doubt), numbers, gaps)


def _state_after(mark: JournalState | None, found: JournalState | None, highest: int) -> JournalState:
    """Continue the numbering after every number that may have been assigned."""
    latest = max(state for state in (mark, found, JournalState()) if state is not None)
    first = max(mark.first_number if mark else 1, found.first_number if found else 1)
    last = max(latest.last_number, 0 if found else highest)
    if mark is None:
        last += UNKNOWN_TAIL
    return latest._replace(changes=latest.changes + 1, first_number=first, last_number=last)


def _finish(db: sqlite3.Connection, state: JournalState, numbers: list[int], known_gaps: Ranges) -> Built:
    gaps = missing(numbers, state.first_number, state.last_number)
    for gap in gaps:
        put(db, "gaps", gap)
    write_state(db, state)
    return Built(state, len(numbers), [gap for gap in gaps if gap not in known_gaps])


Row = tuple[Any, ...]


def sound_rows(db: sqlite3.Connection, table: str) -> tuple[list[Row], bool]:
    """The sound rows of a table, checksums left out, and whether they are all there were."""
    found: list[Row] = []
    is_whole = True
    try:
        with naming_damage():
            for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table}"):
                found.append(row)
    except StoreDamaged:
        is_whole = False
    sound = [row[:-1] for row in found if is_sound(row)]
    return sound, is_whole and len(sound) == len(found)


def sound_entries(db: sqlite3.Connection, first: int, last: int) -> Iterator[Row]:
    """Yield the sound entries by ascending number; unreadable parts of the file are skipped."""
    after = first - 1
    while after < last and _has_entries(db):
        try:
            with naming_damage(), closing(_entries_above(db, after)) as found:
                for row in found:
                    if is_sound(row) and after < row[0] <= last:
                        after = row[0]
                        yield row[:-1]
            return
        except StoreDamaged:
            after += 1


def highest_number(db: sqlite3.Connection) -> int:
    """The number of the last sound entry; 0 where none can be found from the end."""
    try:
        with naming_damage():
            newest_first = db.execute(f"SELECT {COLUMNS['entries']} FROM entries ORDER BY number DESC")
            return next((int(row[0]) for row in newest_first if is_sound(row)), 0)
    except StoreDamaged:
        return 0


def _has_entries(db: sqlite3.Connection) -> bool:
    """Whether the table exists at all; if not, every number would fail in the same way."""
    try:
        with naming_damage():
            return bool(db.execute("SELECT number FROM entries LIMIT 0").description)
    except StoreDamaged:
        return False


def _entries_above(db: sqlite3.Connection, number: int) -> sqlite3.Cursor:
    return db.execute(f"SELECT {COLUMNS['entries']} FROM entries WHERE number > ? ORDER BY number", (number,))


# The possible states of a journal at its opening, and the action for each: one table.


class Salvage(StrEnum):
    """The state of an earlier salvage: whether there is a folder of a damaged journal whose salvage was interrupted."""

    NONE = "none"
    INTERRUPTED = "interrupted"


class File(StrEnum):
    """The state of the journal's file and its WAL."""

    ABSENT = "absent"
    ONLY_WAL = "only its WAL"
    UNREADABLE = "unreadable"  # not one that SQLite would read as a database in WAL mode
    KNOWN = "of a known schema"
    NEWER = "of a newer schema"


class Mark(StrEnum):
    """The state of the high-water mark."""

    ABSENT = "absent"
    UNREADABLE = "unreadable"
    UNUSED = "unused"  # nothing was acknowledged
    USED = "used"


class Look(StrEnum):
    """The extent of the check of a file: all of one that is small or suspect, otherwise its end."""

    END = "end"
    ALL = "all"


class OpeningAction(StrEnum):
    """The action for the files that were found."""

    RESUME = "resume the salvage"
    REFUSE = "refuse: a newer program's journal is no damage"
    CREATE = "create a journal"
    SALVAGE = "salvage what is sound"
    CHECK_END = "check the end, salvage if it is damaged"
    CHECK_ALL = "check everything, salvage if it is damaged"


class RecoveryCase(NamedTuple):
    """The files found where a journal is to be opened: one key of the table."""

    salvage: Salvage
    file: File
    mark: Mark
    look: Look

    @classmethod
    def of(cls, path: Path, full_check_bytes: int | None, *, is_interrupted: bool) -> Self:
        """Return the state of the files at `path`. Raises `sqlite3.Error` and `OSError` if they cannot be read."""
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

    def holds(self, found: RecoveryCase) -> bool:
        return (
            found.salvage in self.salvage
            and found.file in self.file
            and found.mark in self.mark
            and found.look in self.look
        )


_MARKED = (Mark.UNUSED, Mark.USED)
TABLE = (  # exactly one row fits each situation; fields that a row does not name may have any value
    _Row(OpeningAction.RESUME, salvage=[Salvage.INTERRUPTED]),
    _Row(OpeningAction.REFUSE, file=[File.NEWER]),
    _Row(OpeningAction.CREATE, file=[File.ABSENT], mark=[Mark.ABSENT, Mark.UNUSED]),
    _Row(OpeningAction.SALVAGE, file=[File.ABSENT], mark=[Mark.UNREADABLE, Mark.USED]),
    _Row(OpeningAction.SALVAGE, file=[File.ONLY_WAL, File.UNREADABLE]),
    _Row(OpeningAction.SALVAGE, file=[File.KNOWN], mark=[Mark.ABSENT, Mark.UNREADABLE]),
    _Row(OpeningAction.CHECK_END, file=[File.KNOWN], mark=_MARKED, look=[Look.END]),
    _Row(OpeningAction.CHECK_ALL, file=[File.KNOWN], mark=_MARKED, look=[Look.ALL]),
)


def decide(found: RecoveryCase) -> OpeningAction:
    """Return the action for a situation."""
    return next(row.action for row in TABLE if row.holds(found))


def suspicion_path(path: Path) -> Path:
    """Return the path of the file that marks the journal at `path` as suspect."""
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


_FRESH, _REPORT, _REASON = "salvaged.db", "report.json", "reason.txt"


@dataclass(frozen=True, slots=True)
class DamageReport:
    """The report on a damaged journal: the place of the broken files, the reason, and the numbers in doubt. A number
    in doubt was assigned and perhaps acknowledged, but its message is lost (ranges, both ends included).

    `salvaged` entries are in the new file under their old numbers. With `consumers_in_doubt` durable consumers were
    lost too; they receive every entry again when they register. Payloads that are redacted later stay in the folder.
    """

    moved_to: Path
    reason: str
    in_doubt: tuple[tuple[int, int], ...]
    salvaged: int
    consumers_in_doubt: bool

    def __str__(self) -> str:
        ranges = ", ".join(f"{first} to {last}" for first, last in self.in_doubt) or "none"
        lost = "; what consumers had acknowledged is lost, too, so they get everything again"
        return (
            f"the journal was damaged ({self.reason}); {self.salvaged} messages were saved, in doubt are numbers"
            f" {ranges}{lost if self.consumers_in_doubt else ''}; the broken file is in {self.moved_to}"
        )


def salvage(path: Path, reason: str) -> DamageReport:
    """Move the journal at `path` aside and put a fresh one with all that is sound in its place.

    Raises `OSError` and `sqlite3.Error` where that cannot be written; a repeated call resumes the salvage.
    """
    folder = _new_folder(path)
    _write(folder / _REASON, reason)
    sync_folder(path.parent)
    return _proceed(path, folder)


def _new_folder(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in count(1))
    folder = next(name for name in names if not name.exists())
    folder.mkdir(mode=0o700)
    return folder


def set_aside(path: Path, reason: str) -> DamageReport:
    """Move the journal at `path` aside and put an empty one in its place, which is filled from a log.

    Raises `OSError` and `sqlite3.Error` where that cannot be written; the next opening continues there.
    """
    folder = _new_folder(path)
    _move_files(path, folder)
    _create(path)
    return DamageReport(folder, reason, in_doubt=(), salvaged=0, consumers_in_doubt=False)


def _interrupted(path: Path) -> Path | None:
    """The folder of a salvage that a crash has interrupted."""
    for folder in path.parent.glob(f"{path.name}.damaged-*"):
        is_begun = (folder / _REASON).exists()  # without it nothing has been moved yet
        is_done = (folder / _REPORT).exists() and not (folder / _FRESH).exists()
        if is_begun and not is_done:
            return folder
    return None


def _proceed(path: Path, folder: Path) -> DamageReport:
    if not (folder / _REPORT).exists():
        _move_files(path, folder)
        _salvage_in(folder, path.name)
    _move(mark_path(folder / _FRESH), mark_path(path))
    _move(folder / _FRESH, path)
    sync_folder(path.parent)
    content = json.loads((folder / _REPORT).read_text())
    in_doubt = tuple((first, last) for first, last in content.pop("in_doubt"))
    return DamageReport(folder, in_doubt=in_doubt, **content)


def _salvage_in(folder: Path, name: str) -> None:
    built = build_journal(folder / _FRESH, folder / name, read_mark(mark_path(folder / name)))
    create_mark(mark_path(folder / _FRESH), built.state)
    content: dict[str, str | int | Sequence[tuple[int, int]]] = {
        "reason": (folder / _REASON).read_text(),
        "in_doubt": built.lost,
        "salvaged": built.salvaged,
        "consumers_in_doubt": built.state.consumers_in_doubt,
    }
    _write(folder / _REPORT, json.dumps(content))


def _move_files(path: Path, folder: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", mark_path(path).name):
        _move(path.parent / name, folder / name)
    sync_folder(path.parent)


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)


def _write(path: Path, text: str) -> None:
    half_written = path.with_name(path.name + ".new")
    half_written.write_text(text)
    half_written.replace(path)
    sync_folder(path.parent)


def open_soundly(
    path: Path, full_check_bytes: int | None, mend: Callable[[Path, str], DamageReport] = salvage
) -> tuple[HighWaterMark, DamageReport | None]:
    """Ensure a sound journal at `path`; returns its mark and the damage report, if any. `mend` replaces a damaged one.

    A file of more than `full_check_bytes` that is not suspect is checked only at its end; None is no limit. Raises
    `StoreFailed` for failures other than damage: no permission, no space, another owner, a newer program's journal.
    """
    try:
        report = _make_sound(path, full_check_bytes, mend)
        return HighWaterMark(mark_path(path)), report
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def _make_sound(
    path: Path, full_check_bytes: int | None, mend: Callable[[Path, str], DamageReport]
) -> DamageReport | None:
    interrupted = _interrupted(path)
    action = decide(RecoveryCase.of(path, full_check_bytes, is_interrupted=interrupted is not None))
    match action:
        case OpeningAction.RESUME:
            assert interrupted is not None
            return _proceed(path, interrupted)
        case OpeningAction.REFUSE:
            raise StoreTooNew(f"{path}: its schema is newer than this program, which leaves it alone; use a newer one")
        case OpeningAction.CREATE:
            _create(path)
            return None
        case OpeningAction.SALVAGE | OpeningAction.CHECK_ALL | OpeningAction.CHECK_END:
            fault = find_damage(path, read_mark(mark_path(path)), in_full=action is not OpeningAction.CHECK_END)
            return mend(path, fault) if fault else None


def _create(path: Path) -> None:
    """Create the mark before the journal, so that after a crash no journal seems to be missing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    create_mark(mark_path(path), JournalState())
    half_made = path.with_name(f"{path.name}.new")
    build_journal(half_made, None, JournalState())
    half_made.replace(path)
    sync_folder(path.parent)
