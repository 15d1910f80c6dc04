"""Where a system keeps its data and can be found."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from local.apps.run_directory import RunDirectory
from local.errors import AlreadyRunning, ConfigError


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


def test_a_data_directory_that_cannot_be_locked_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "data" / "lock").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot hold the data"), RunDirectory(tmp_path / "data").lock():
        pass
