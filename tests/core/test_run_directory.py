"""Where a system keeps its data and can be found."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.core.data_dir import RunDirectory, RunInfo
from local.core.errors import AlreadyRunning, ConfigError

DEAD = RunInfo(2**22 + 1, "", "", False, "", "", None)  # above the highest process id of Linux


def test_a_data_directory_that_cannot_be_made_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taken = tmp_path / "notes.txt"
    taken.write_text("no folder")
    for path in (taken, taken / "data"):
        with pytest.raises(ConfigError, match=f"{path} cannot hold the data: .*--data-dir"):
            RunDirectory(path).make_data_dir()


def test_a_second_system_on_the_same_data_is_refused_wherever_its_temporary_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    for name in ("tmp1", "tmp2"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp1"))
    with RunDirectory(data_dir).lock():
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp2"))
        with pytest.raises(AlreadyRunning, match=f"process {os.getpid()}"), RunDirectory(data_dir).lock():
            pass
    with RunDirectory(data_dir).lock():
        pass


def test_what_a_killed_system_has_left_is_cleared_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own, dead, told, held, used, young = (RunDirectory(tmp_path / name) for name in "abcdef")
    (dead.path / "pub").touch()
    dead.write(DEAD)
    told.write(replace(DEAD, pid=os.getpid()))
    (used.path / "notes.txt").touch()
    held.data_dir.mkdir()
    with held.lock():
        for directory in (own, dead, told, held, used):
            os.utime(directory.path, (0, 0))
        assert own.clear_others() == 1
    left = {directory.path for directory in (own, told, held, used, young)}
    assert set(own.path.parent.iterdir()) == left


def test_a_full_disk_makes_a_lock_that_does_not_say_whose_it_is_and_facts_that_wait(
    small_disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk.folder))
    directory = RunDirectory(small_disk.folder / "data")
    directory.make_data_dir()
    small_disk.fill()
    with directory.lock():
        assert not directory.write(DEAD)
        with pytest.raises(AlreadyRunning, match="another process"), directory.lock():
            pass
        small_disk.free()
        assert directory.write(DEAD)
