"""What the supervisor and clients of other kinds may say, written down for everybody as soon as there is room."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from local.apps.announcer import what_supervisor_says
from local.apps.introduction import ROOM_SECONDS
from local.apps.run_directory import SENDERS
from local.bus.address import BusAddress
from local.bus.keyring import with_keys
from local.bus.sender_guard import Declaration, Declarations
from local.config import SystemConfig
from local.errors import DeclarationNotWritten, LocalError

log = logging.getLogger(__name__)

SUPERVISOR = "supervisor"


class SystemDeclarations:
    """The declarations in one data directory; a full disk holds up nobody's start."""

    def __init__(self, data_dir: Path, bus: BusAddress, system: SystemConfig) -> None:
        self._declarations = Declarations(data_dir / SENDERS)
        self._bus, self._system = bus, system
        self._are_written = False

    def write(self) -> None:
        """Write them, and make the keys of the clients, if they need any. Raises `DeclarationNotWritten`, `BadKeys`."""
        self._are_written = False
        for name, subjects in self._system.bus_clients.items():
            self._declarations.write(name, Declaration(frozenset(subjects)))
            with_keys(self._bus, name)
        self._declarations.write(SUPERVISOR, what_supervisor_says())
        self._are_written = True

    def begin(self) -> None:
        """Write them if there is room, else say that they wait for it. Raises `BadKeys`."""
        try:
            self.write()
        except DeclarationNotWritten as error:
            log.warning("%s", error)

    async def written(self) -> None:
        """Return once they are written."""
        while not self._are_written:
            await asyncio.sleep(ROOM_SECONDS)
            try:
                self.write()
            except LocalError as error:
                log.debug("%s", error)
