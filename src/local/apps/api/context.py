"""What every route works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from local.apps.api.bus_stream import BusStreams
from local.apps.api.participant_table import ParticipantTable
from local.apps.memories import Memories
from local.apps.session import LoCALSession
from local.runtime.attachments import Attachments


@dataclass(frozen=True, slots=True)
class ApiContext:
    """`instance` is fresh at each start of the process; `backend` names the model server ("stand_in" is none)."""

    session: LoCALSession
    memories: Memories
    participants: ParticipantTable
    bus_streams: BusStreams
    attachments: Attachments
    instance: str
    backend: str
    version: str
    trail_seconds: float
    keep_alive_seconds: float
    clock: Callable[[], float]
