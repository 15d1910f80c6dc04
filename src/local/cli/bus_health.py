"""The health of a running system, as reported by its participants on the bus: for a system without HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from local.bus.by_hand import client_bus
from local.bus.envelope import Envelope
from local.bus.messages import SUPERVISOR, ParticipantStatus
from local.bus.security import Declaration
from local.core.data_dir import RunDirectory
from local.core.errors import MalformedFrame
from local.runtime.runner import LOOK_SECONDS

LISTEN_SECONDS = 1.5 * LOOK_SECONDS  # a new participant receives a status of every living one within one look
SAYS = Declaration(frozenset({ParticipantStatus.subject}))


async def health_on_bus(data_dir: Path) -> dict[str, Any]:
    """Return `status`, `problem` and `participants` as in GET /health. Raises `LocalError`."""
    heard: dict[tuple[str, int], ParticipantStatus] = {}

    def receive(envelope: Envelope) -> None:
        try:
            status = ParticipantStatus.decode(envelope.payload)
        except MalformedFrame as error:
            bus.reject(str(error), envelope.payload)
            return
        heard[status.name, status.pid] = status

    def newcomer(state: Literal["starting", "stopping"]) -> ParticipantStatus:
        return ParticipantStatus(name=bus.sender, kind="frontend", pid=os.getpid(), instance=bus.instance, state=state)

    async with client_bus(RunDirectory(data_dir).running_bus(), "doctor", SAYS) as bus:
        bus.subscribe(ParticipantStatus.subject, receive)
        await bus.ready()
        bus.post(newcomer("starting"))
        await asyncio.sleep(LISTEN_SECONDS)
        bus.post(newcomer("stopping"))
    return health_of(heard.values())


def health_of(heard: Collection[ParticipantStatus]) -> dict[str, Any]:
    """Return the health of a system, from the latest statuses: the supervisor's on its children, and their own."""
    supervisor = next((status for status in heard if status.name == SUPERVISOR), None)
    if supervisor is None:
        return {"status": "degraded", "problem": "its supervisor says nothing", "participants": []}
    said = {(status.child, status.pid): status for status in heard}
    rows = []
    for child in supervisor.children:
        own = said.get((child.name, child.pid or 0))
        rows.append({**child.model_dump(), "details": own.details if own else {}})
    is_well = all(row["state"] == "ready" and "problem" not in row["details"] for row in rows)
    problem = supervisor.details.get("problem", "")
    return {"status": "ok" if is_well and not problem else "degraded", "problem": problem, "participants": rows}
