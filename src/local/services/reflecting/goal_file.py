"""The goals there are, in one small file."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from local.errors import LocalError, StoreFailed
from local.private_file import write_private
from local.services.reflecting.goal import Goal

log = logging.getLogger(__name__)

FILE_NAME = "goals.json"  # in the data directory
_GOALS = TypeAdapter(tuple[Goal, ...])


class GoalFile:
    """Written whole and durably. What cannot be read is kept beside it under another name, and said to be so."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE_NAME

    def read(self) -> list[Goal]:
        """As they were written last."""
        try:
            goals = list(_GOALS.validate_json(self._path.read_bytes()))
            for goal in goals:
                goal.times  # noqa: B018 # which raises for what can never be due
            return goals
        except FileNotFoundError:
            return []
        except (OSError, ValidationError, LocalError) as error:
            kept = self._path.with_suffix(".damaged.json")
            why = str(error).partition("\n")[0]
            log.error("%s cannot be read (%s): it is kept as %s, and there are no goals", self._path, why, kept.name)
            self._path.rename(kept)
            return []

    def write(self, goals: Iterable[Goal]) -> None:
        """Raises `StoreFailed`."""
        try:
            write_private(self._path, _GOALS.dump_json(tuple(goals), indent=1).decode() + "\n")
        except OSError as error:
            raise StoreFailed(f"{self._path} cannot be written: {error.strerror}") from None
