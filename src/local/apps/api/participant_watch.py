"""Who takes part, as a stream tells it: each participant when something about it is new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from local.apps.api.event_stream import ServerEvent
from local.apps.api.participant_table import ParticipantTable
from local.protocol.control_messages import GONE

Row = dict[str, Any]
Key = tuple[str, int | None]


class ParticipantWatch:
    """Compares the table with what was told of it, when that is `due`. `clock` gives the table's seconds."""

    def __init__(self, table: ParticipantTable, clock: Callable[[], float]) -> None:
        self._table, self._clock = table, clock
        self._told: dict[Key, Row] = {}
        self.due = True

    def restart(self) -> None:
        """What was told has not arrived."""
        self._told, self.due = {}, True

    def take(self) -> list[ServerEvent]:
        """The rows that are new or otherwise than before; whoever has left the table is `gone`."""
        if not self.due:
            return []
        self.due = False
        rows = {_key(row): row for row in self._table.listing(self._clock())}
        gone = [{**row, "state": GONE} for key, row in self._told.items() if key not in rows]
        changed = [row for key, row in rows.items() if self._told.get(key) != row]
        self._told = rows
        return [ServerEvent("participant", to_json(row)) for row in (*gone, *changed)]


def _key(row: Row) -> Key:
    """A child keeps its name over its restarts; of those started by hand several may have one name."""
    return row["name"], row["pid"] if row["detail"] == "started by hand" else None
