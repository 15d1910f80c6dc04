"""What cannot be kept because the disk is full is told as that, whatever file it was to go into."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from local.core.attachments import AttachmentStore
from local.core.config_file import change
from local.core.errors import LocalError, StoreFull, StoreReadOnly, refused_by_disk
from local.core.users import Users
from local.reflection.goals import GoalFile
from local.reflection.routine import RoutineDiary, RoutineState

WRITERS: dict[str, Callable[[Path], object]] = {
    "goals": lambda folder: GoalFile(folder).write([]),
    "switches": lambda folder: RoutineDiary(folder, "dreams.json").write(RoutineState()),
    "attachments": lambda folder: AttachmentStore(folder).put("a.txt", "text/plain", b"a"),
    "users": lambda folder: Users(folder).add("ann"),
    "settings": lambda folder: change(folder / "system.yaml", {"api_port": 1}),
}


def test_a_disk_that_is_read_only_is_told_as_that(tmp_path: Path) -> None:
    assert isinstance(refused_by_disk(tmp_path, errno.EROFS), StoreReadOnly)


@pytest.fixture(params=[errno.ENOSPC, errno.EACCES])
def refusal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Why nothing can be written."""
    number: int = request.param

    def refuse(*_: Any) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(AttachmentStore, "_write", refuse)
    return number


@pytest.mark.parametrize("what", WRITERS)
def test_a_full_disk_is_told_from_any_other_reason(what: str, refusal: int, tmp_path: Path) -> None:
    with pytest.raises(LocalError) as failed:
        WRITERS[what](tmp_path)
    assert isinstance(failed.value, StoreFull) == (refusal == errno.ENOSPC)
    assert str(tmp_path) in str(failed.value)
