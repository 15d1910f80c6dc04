"""How a running system is that has no HTTP API: what its processes say of themselves on the bus."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any, Literal

from local.apps.api.participant_table import ParticipantTable
from local.apps.participant import open_bus
from local.apps.run_directory import RunDirectory
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope
from local.protocol.messages import ParticipantStatus
from local.runtime.presence import LOOK_SECONDS

LISTEN_SECONDS = 1.5 * LOOK_SECONDS  # a newcomer hears from everybody alive within one look


async def health_on_bus(data_dir: Path) -> dict[str, Any]:
    """`status`, `problem` and `participants` as GET /health would give them. Raises `LocalError`."""
    table = ParticipantTable()

    def hear(envelope: Envelope) -> None:
        if envelope.instance == bus.instance:
            return
        try:
            table.heard(ParticipantStatus.decode(envelope.payload), time.monotonic())
        except MalformedFrame as error:
            bus.reject(str(error), envelope.payload)

    def newcomer(state: Literal["starting", "stopping"]) -> ParticipantStatus:
        return ParticipantStatus(name=bus.sender, kind="door", pid=os.getpid(), instance=bus.instance, state=state)

    async with open_bus("doctor", RunDirectory(data_dir).running_bus(), data_dir) as bus:
        bus.subscribe(ParticipantStatus.subject, hear)
        await bus.ready()
        bus.post(newcomer("starting"))
        await asyncio.sleep(LISTEN_SECONDS)
        bus.post(newcomer("stopping"))
    now = time.monotonic()
    return {"status": table.health(now), "problem": table.problem, "participants": table.listing(now)}
