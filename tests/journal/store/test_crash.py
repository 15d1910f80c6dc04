"""A crash at any step of a commit, of making a journal, of salvaging one."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.journal.recovery import DamageReport
from local.journal.schema import Appended, Entry, HighWaterMark, JournalState
from local.journal.store import JournalStore

Journal = Any  # the class is in conftest.py, which no test can import
Judge = Callable[..., Awaitable[DamageReport | None]]
MakeEntry = Callable[..., Entry]


class Crash(BaseException):
    """The process ends here."""


def crash_at(patched: pytest.MonkeyPatch, step: int) -> None:
    """Let the process end instead of its `step`th rename."""
    replace, left = Path.replace, [step]

    def counted(source: Path, target: Path) -> Path:
        if left[0] == 0:
            raise Crash
        left[0] -= 1
        return replace(source, target)

    patched.setattr(Path, "replace", counted)


async def test_a_crash_at_any_commit_loses_nothing_and_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: MakeEntry
) -> None:
    instants: list[tuple[Path, int]] = []
    path = tmp_path / "live" / "journal.db"
    advance = HighWaterMark.advance
    acknowledged = 0

    def keep_what_a_crash_would_leave() -> None:
        case = tmp_path / str(len(instants))
        shutil.copytree(path.parent, case, ignore=shutil.ignore_patterns("*-shm"))
        instants.append((case / path.name, acknowledged))

    def watched(mark: HighWaterMark, state: JournalState) -> None:
        keep_what_a_crash_would_leave()
        advance(mark, state)
        keep_what_a_crash_would_leave()

    monkeypatch.setattr(HighWaterMark, "advance", watched)
    async with JournalStore(path) as store:
        await store.register("critic", ["query."], floor=0)
        for number in range(1, 30):
            await store.commit([entry(number)])
            acknowledged = number
    for left, known in instants:
        async with JournalStore(left) as store:
            assert store.damage is None
            found = [stored.number for stored in await store.read(limit=100)]
            assert found[:known] == list(range(1, known + 1))
            assert len(found) <= known + 1


async def test_a_crash_while_a_journal_is_made_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: MakeEntry
) -> None:
    for step in range(20):
        case = tmp_path / str(step)
        with monkeypatch.context() as patched:
            crash_at(patched, step)
            try:
                await JournalStore(case / "journal.db").__aenter__()
            except Crash:
                pass
            else:
                break
        async with JournalStore(case / "journal.db") as store:
            assert store.damage is None
            assert await store.commit([entry(1)]) == [Appended(1, True)]
    assert step > 1


async def test_a_crash_during_a_salvage_is_taken_up_where_it_ended(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: Judge
) -> None:
    for step in range(20):
        path = journal.put(tmp_path / str(step), wal=journal.files["wal"][:20_000])
        with monkeypatch.context() as patched:
            crash_at(patched, step)
            try:
                await JournalStore(path).__aenter__()
            except Crash:
                pass
            else:
                break
        damage = await judge(path, journal.acknowledged)
        assert damage is not None
        assert damage.in_doubt[-1][-1] == journal.count
    assert step > 5
