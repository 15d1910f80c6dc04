"""What every route works with: the parts of the API, and identifiers as clients may choose them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path
from pydantic import StringConstraints

from local.agents.attachments import Attachments
from local.apps.api.bus_stream import BusStreams
from local.apps.api.page_folder import PageFolder
from local.apps.api.participant_table import ParticipantTable
from local.apps.memories import Memories
from local.apps.session import LoCALSession
from local.apps.users import Users
from local.bus.blobs import BlobStore

ID_PATTERN = r"^[A-Za-z0-9._:~-]{1,128}$"

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
"""In a body: 1 to 128 letters, digits and `._:~-`."""

PathId = Annotated[str, Path(pattern=ID_PATTERN)]
"""The same in a path."""


@dataclass(frozen=True, slots=True)
class ApiContext:
    """`instance` is fresh at each start of the process; `backend` names the model server ("stand_in" is none)."""

    session: LoCALSession
    memories: Memories
    participants: ParticipantTable
    bus_streams: BusStreams
    attachments: Attachments
    blobs: BlobStore
    users: Users
    instance: str
    backend: str
    version: str
    trail_seconds: float
    keep_alive_seconds: float
    clock: Callable[[], float]
    page: PageFolder
