"""Which system answers where several commands come at once to a folder on which none runs yet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from local.cli import temporary_system
from local.cli.client import AnsweringSystem
from local.cli.temporary_system import SystemDidNotStart
from local.core.data_dir import DataDirLock, RunDirectory, RunInfo

FACTS = RunInfo(os.getpid(), "ipc:///p", "ipc:///s", False, "", "stand_in", "http://127.0.0.1:1")

NOBODY = 2**22 + 1  # larger than any process's number


class Refused:
    """A system that is started while another one holds the folder."""

    ended: ClassVar[list[Refused]] = []

    def __init__(self, data_dir: Path, *, flags: list[str]) -> None: ...

    def __enter__(self) -> None:
        raise SystemDidNotStart("a system runs here already")

    def __exit__(self, *error: object) -> None:
        self.ended.append(self)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """The run directory of a data directory; who wants to start a system there is refused."""
    monkeypatch.setattr(temporary_system, "TemporarySystem", Refused)
    directory = RunDirectory(tmp_path)
    yield directory
    directory.path.joinpath("facts.json").unlink(missing_ok=True)


def test_a_system_that_somebody_else_starts_is_waited_for(
    folder: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Callable[[], object]] = [lambda: None, lambda: folder.write(FACTS)]
    monkeypatch.setattr(time, "sleep", lambda seconds: looks.pop(0)())
    with DataDirLock(folder.data_dir), AnsweringSystem(None, folder.data_dir, may_start=True) as system:
        system.find()
    assert not looks
    assert Refused.ended == []  # it is somebody else's, and runs on


def test_a_start_that_has_failed_by_itself_is_said(folder: RunDirectory) -> None:
    (folder.data_dir / "lock").write_text(f"{NOBODY}")
    with AnsweringSystem(None, folder.data_dir, may_start=True) as system, pytest.raises(SystemDidNotStart):
        system.find()


def test_a_system_that_dies_while_it_is_waited_for_is_said(
    folder: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = folder.data_dir / "lock"
    lock.write_text(str(os.getpid()))
    monkeypatch.setattr(time, "sleep", lambda seconds: lock.unlink())
    with AnsweringSystem(None, folder.data_dir, may_start=True) as system, pytest.raises(SystemDidNotStart):
        system.find()
