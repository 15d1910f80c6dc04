"""The children of the supervisor that are not participants: the proxy and model servers, the stand-in among them."""

from __future__ import annotations

import asyncio
import importlib
import socket
from contextlib import closing, suppress
from pathlib import Path

from local.bus.proxy import Proxy
from local.core.bus_address import BusAddress
from local.core.environment import environment
from local.models import servers as serving
from local.models.servers import ServerSpec
from local.runtime.child import Lifeline
from local.stand_in.server import StandInSettings


def run_proxy(lifeline: Lifeline, address: BusAddress) -> None:
    """Forward frames until SIGTERM. A beat is sent only after the forwarding loop itself has answered."""
    asyncio.run(_run_proxy(lifeline, address))


async def _run_proxy(lifeline: Lifeline, address: BusAddress) -> None:
    proxy = Proxy(address)
    with closing(proxy), lifeline.stoppable() as stop:
        lifeline.ready()
        while not stop.is_set():
            proxy.statistics()
            lifeline.beat()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), lifeline.until_next_beat())


def run_stand_in(lifeline: Lifeline, settings: StandInSettings, listener: socket.socket) -> None:
    """Serve the stand-in on a bound socket until SIGTERM."""
    asyncio.run(_run_stand_in(lifeline, settings, listener))


async def _run_stand_in(lifeline: Lifeline, settings: StandInSettings, listener: socket.socket) -> None:
    async with lifeline.serving() as stop:
        lifeline.ready()  # the socket listens already; who connects now is served in a moment
        module, _, name = environment().stand_in.partition(":")
        await getattr(importlib.import_module(module), name)(settings, listener, stop)


def run_model_server(lifeline: Lifeline, spec: ServerSpec, log_dir: Path) -> None:
    """Run a model server until SIGTERM; it ends with this process, however that ends."""
    asyncio.run(_run_model_server(lifeline, spec, log_dir))


async def _run_model_server(lifeline: Lifeline, spec: ServerSpec, log_dir: Path) -> None:
    async with lifeline.serving() as stop:
        await serving.serve(spec, log_dir, stop, lifeline.ready)
