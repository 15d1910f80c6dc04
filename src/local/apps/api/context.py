"""What every route works with: the parts of the API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from local.agents.attachments import Attachments
from local.apps.api.browser_streams import BrowserStreams
from local.apps.api.bus_stream import BusStreams
from local.apps.api.identifiers import ID_PATTERN as ID_PATTERN
from local.apps.api.identifiers import Id as Id
from local.apps.api.identifiers import PathId as PathId
from local.apps.api.page_folder import PageFolder
from local.apps.api.participant_table import ParticipantTable
from local.apps.api.query_finder import QueryFinder
from local.apps.memories import Memories
from local.apps.session import LoCALSession
from local.apps.settings_files import SettingsFiles
from local.apps.system_control import SystemControl
from local.apps.users import Users
from local.bus.blobs import BlobStore


@dataclass(frozen=True, slots=True)
class ApiContext:
    """`instance` is fresh at each start of the process; `backend` names the model server ("stand_in" is none)."""

    session: LoCALSession
    queries: QueryFinder
    streams: BrowserStreams
    memories: Memories
    control: SystemControl
    settings: SettingsFiles
    participants: ParticipantTable
    bus_streams: BusStreams
    attachments: Attachments
    blobs: BlobStore
    users: Users
    instance: str
    backend: str
    version: str
    keep_alive_seconds: float
    clock: Callable[[], float]
    page: PageFolder
