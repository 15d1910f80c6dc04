"""One system for each data directory, whatever is done to the directory meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from local.core.data_dir import DataDirLock
from local.core.errors import DeclarationNotWritten
from local.run import data_dir_watch
from local.run.data_dir_watch import DataDirWatch


class Heard:
    """What a watch has said."""

    def __init__(self, lock: DataDirLock) -> None:
        self.problems: asyncio.Queue[str] = asyncio.Queue()
        self.was_renewed, self.is_to_stop = asyncio.Event(), asyncio.Event()
        self.troubles: list[str] = []  # of writing what has to be in the directory, one each time
        self.furnished = 0
        self.watch = DataDirWatch(lock, self.problems.put_nowait, self._furnish, self._renewed, self.is_to_stop.set)

    def _furnish(self) -> None:
        if self.troubles:
            raise DeclarationNotWritten(self.troubles.pop(0))
        self.furnished += 1

    async def _renewed(self) -> None:
        self.was_renewed.set()


def move(path: Path, name: str) -> None:
    path.rename(path.with_name(name))


def replace(directory: Path) -> None:
    move(directory, "elsewhere")
    directory.mkdir()


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(data_dir_watch, "LOOK_SECONDS", 0.01)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


async def test_a_directory_that_was_moved_away_is_a_problem_until_it_is_back(data_dir: Path) -> None:
    with DataDirLock(data_dir) as lock:
        heard = Heard(lock)
        watching = asyncio.create_task(heard.watch.run())
        move(data_dir, "elsewhere")
        assert "is gone" in await heard.problems.get()
        move(data_dir.with_name("elsewhere"), data_dir.name)
        assert await heard.problems.get() == ""
        assert not heard.was_renewed.is_set()
        watching.cancel()


async def test_what_has_to_be_in_a_new_directory_is_written_once_there_is_room(data_dir: Path) -> None:
    with DataDirLock(data_dir) as lock:
        heard = Heard(lock)
        heard.troubles = ["the disk is full"] * 3
        watching = asyncio.create_task(heard.watch.run())
        replace(data_dir)
        assert [await heard.problems.get() for _ in range(2)] == ["the disk is full", ""]
        assert heard.was_renewed.is_set()
        assert (heard.troubles, heard.furnished) == ([], 1)
        watching.cancel()


async def test_where_another_system_got_in_the_first_one_says_so_and_ends(data_dir: Path) -> None:
    with DataDirLock(data_dir) as lock:
        (data_dir / "lock").unlink()
        with DataDirLock(data_dir):
            heard = Heard(lock)
            watching = asyncio.create_task(heard.watch.run())
            await heard.is_to_stop.wait()
            assert "the system ends: a system" in await heard.problems.get()
            watching.cancel()
