"""The supervisor's child that is the stand-in: imported by that child alone, as most systems have a model server."""

from __future__ import annotations

import asyncio
import socket

from local.models.stand_in.server import serve
from local.models.stand_in.stand_in import StandInSettings
from local.runtime.supervisor import Lifeline


def run(lifeline: Lifeline, listener: socket.socket) -> None:
    """Serve the stand-in on a bound socket until SIGTERM."""
    asyncio.run(_run(lifeline, listener))


async def _run(lifeline: Lifeline, listener: socket.socket) -> None:
    async with lifeline.serving() as stop:
        lifeline.ready()  # the socket listens already; who connects now is served in a moment
        await serve(StandInSettings(), listener, stop)
