"""The goals there are, in one small file."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from local.errors import LocalError, StoreFailed
from local.private_file import write_private
from local.services.reflecting.goal import Goal
from local.services.sqlite_file import store_failure

log = logging.getLogger(__name__)

FILE_NAME = "goals.json"  # in the data directory
_GOALS = TypeAdapter(tuple[Goal, ...])
_GOAL = TypeAdapter(Goal)
_LIST = TypeAdapter(list[Any])


class GoalFile:
    """Written whole and durably. What cannot be read is kept beside it under another name, and said to be so."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE_NAME

    def read(self) -> list[Goal]:
        """The goals as they were written last, without those that cannot be read. Raises `StoreFailed`."""
        try:
            written = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreFailed(f"{self._path} cannot be read: {error.strerror}") from None
        goals, faults = _goals_in(written)
        if faults:
            kept = self._path.with_suffix(".damaged.json")
            told = "%s cannot be read (%s): it is kept as %s, and the goals that could be read are %d"
            log.error(told, self._path, faults[0], kept.name, len(goals))
            try:
                shutil.copy(self._path, kept)
            except OSError as error:
                raise StoreFailed(f"{kept} cannot be written: {error.strerror}") from None
        return goals

    def write(self, goals: Iterable[Goal]) -> None:
        """Raises `StoreFailed`."""
        try:
            write_private(self._path, _GOALS.dump_json(tuple(goals), indent=1).decode() + "\n")
        except OSError as error:
            raise store_failure(self._path, error, what="cannot be written: ") from None


def _goals_in(written: bytes) -> tuple[list[Goal], list[str]]:
    """The goals that can be read and are due at times that there are, and what is wrong with the others."""
    try:
        told = _LIST.validate_json(written)
    except ValidationError as error:
        return [], [_fault(error)]
    goals, faults = list[Goal](), list[str]()
    for each in told:
        try:
            goal = _GOAL.validate_python(each)
            goal.times  # noqa: B018 # which raises for what can never be due
            goals.append(goal)
        except (ValidationError, LocalError) as error:
            faults.append(_fault(error))
    return goals, faults


def _fault(error: Exception) -> str:
    return " ".join(str(error).splitlines()[:3])
