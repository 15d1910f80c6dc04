"""How far a routine has come, what that has cost, and whether it is switched on: in one small file."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from local.private_file import write_private
from local.services.sqlite_file import store_failure

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoutineState:
    """`read_until` is the time of the last exchange that was read, `done_at` when the routine was done last, both in
    seconds since 1970; `tokens` were used on the day `day`. `is_on` is None where nobody has switched it."""

    is_on: bool | None = None
    read_until: float = 0.0
    done_at: float = 0.0
    day: str = ""
    tokens: int = 0

    def tokens_on(self, today: date) -> int:
        """What was used today."""
        return self.tokens if self.day == today.isoformat() else 0

    def spent(self, tokens: int, today: date) -> RoutineState:
        """The state after so many more."""
        return replace(self, day=today.isoformat(), tokens=self.tokens_on(today) + tokens)


class RoutineDiary:
    """Keeps the state of one routine. A file that cannot be read is said to be so, and begun anew: then exchanges are
    read again."""

    def __init__(self, data_dir: Path, file_name: str) -> None:
        self._path = data_dir / file_name

    def read(self) -> RoutineState:
        """The state that was written last."""
        try:
            return TypeAdapter(RoutineState).validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return RoutineState()
        except (OSError, ValidationError) as error:
            log.warning("%s cannot be read, and is begun anew: %s", self._path, str(error).partition("\n")[0])
            return RoutineState()

    def write(self, state: RoutineState) -> None:
        """Raises `StoreFailed`."""
        try:
            write_private(self._path, to_json(asdict(state)).decode() + "\n")
        except OSError as error:
            raise store_failure(self._path, error, what="cannot be written: ") from None
