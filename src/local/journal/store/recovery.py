"""Before a journal is used: a new one is made, an interrupted salvage finished, a damaged one replaced.

A damaged journal is moved aside, whole, and what is sound in it goes into a fresh one. Any step can be the last before
a crash. A folder `<journal>.damaged-<n>` without a report is a salvage that was interrupted, which the next start takes
up; nothing fresh is in its place before the report is written.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from local.errors import StoreFailed
from local.journal.store.damage import find_damage
from local.journal.store.high_water_mark import HighWaterMark, create_mark, mark_path, read_mark, sync_folder
from local.journal.store.rebuild import build_journal
from local.journal.store.schema import JournalState
from local.journal.store.situation import OpeningAction, Situation, decide
from local.services.sqlite_file import store_failure

_FRESH, _REPORT, _REASON = "salvaged.db", "report.json", "reason.txt"


@dataclass(frozen=True, slots=True)
class DamageReport:
    """What happened to a journal: where the broken one lies, why, and which numbers are in doubt: they were given out,
    perhaps acknowledged, and are gone (ranges, both ends included).

    `salvaged` entries are in the fresh file under their old numbers. With `consumers_in_doubt` durable consumers were
    lost too; they get every entry again when they register. Payloads redacted later stay in the folder.
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
            f" {ranges}{lost if self.consumers_in_doubt else ''}; the broken file lies in {self.moved_to}"
        )


def salvage(path: Path, reason: str) -> DamageReport:
    """Move the journal at `path` aside and put a fresh one with all that is sound in its place.

    Raises `OSError` and `sqlite3.Error` where that cannot be written; trying again goes on where it ended.
    """
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in count(1))
    folder = next(name for name in names if not name.exists())
    folder.mkdir(mode=0o700)
    _write(folder / _REASON, reason)
    sync_folder(path.parent)
    return _proceed(path, folder)


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
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", mark_path(path).name):
            _move(path.parent / name, folder / name)
        sync_folder(path.parent)
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


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)


def _write(path: Path, text: str) -> None:
    half_written = path.with_name(path.name + ".new")
    half_written.write_text(text)
    half_written.replace(path)
    sync_folder(path.parent)


def open_soundly(path: Path, full_check_bytes: int | None) -> tuple[HighWaterMark, DamageReport | None]:
    """Leave a sound journal at `path`; returns its mark and what had to be done about damage.

    A file of more than `full_check_bytes` that nobody suspects is checked at its end only; None is no limit. Raises
    `StoreFailed` for what is no damage: no permission, no space, another owner, a newer program's journal.
    """
    try:
        report = _make_sound(path, full_check_bytes)
        return HighWaterMark(mark_path(path)), report
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def _make_sound(path: Path, full_check_bytes: int | None) -> DamageReport | None:
    interrupted = _interrupted(path)
    action = decide(Situation.of(path, full_check_bytes, is_interrupted=interrupted is not None))
    match action:
        case OpeningAction.RESUME:
            assert interrupted is not None
            return _proceed(path, interrupted)
        case OpeningAction.REFUSE:
            raise StoreFailed(f"{path}: its schema is newer than this program, which leaves it alone; use a newer one")
        case OpeningAction.CREATE:
            _create(path)
            return None
        case OpeningAction.SALVAGE | OpeningAction.CHECK_ALL | OpeningAction.CHECK_END:
            fault = find_damage(path, read_mark(mark_path(path)), in_full=action is not OpeningAction.CHECK_END)
            return salvage(path, fault) if fault else None


def _create(path: Path) -> None:
    """The mark first: one that says that nothing was acknowledged makes no file missing after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    create_mark(mark_path(path), JournalState())
    half_made = path.with_name(f"{path.name}.new")
    build_journal(half_made, None, JournalState())
    half_made.replace(path)
    sync_folder(path.parent)
