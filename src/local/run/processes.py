"""The children of the supervisor that are not participants: the proxy and model servers, the stand-in among them."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path

from local.bus.blobs import BlobStore
from local.bus.elsewhere import BlobRights, RemoteClient, RemoteDesk
from local.bus.proxy import PROXY, Proxy
from local.bus.security import Declarations, Keyring
from local.core.bus_address import BusAddress
from local.core.data_dir import ELSEWHERE
from local.core.environment import environment
from local.models import servers as serving
from local.models.servers import ServerSpec
from local.run.participant import bus_of
from local.runtime.child import Lifeline
from local.stand_in.server import StandInSettings
from local.tools.grants import FOLDER, read_public


def run_proxy(lifeline: Lifeline, address: BusAddress, clients: Mapping[str, RemoteClient] | None = None) -> None:
    """Forward frames until SIGTERM, and serve the `clients` on other machines. A beat is sent only after the forwarding
    loop itself has answered.
    """
    asyncio.run(_run_proxy(lifeline, address, clients or {}))


async def _run_proxy(lifeline: Lifeline, address: BusAddress, clients: Mapping[str, RemoteClient]) -> None:
    rights = BlobRights(address.senders.parent / ELSEWHERE, clients) if clients and address.senders else None
    proxy = Proxy(address, rights)
    async with AsyncExitStack() as stack:
        stack.enter_context(closing(proxy))
        stop = stack.enter_context(lifeline.stoppable())
        if rights is not None:
            await stack.enter_async_context(remote_desk(address, clients, rights))
        lifeline.ready()
        while not stop.is_set():
            proxy.statistics()
            lifeline.beat()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), lifeline.until_next_beat())


@asynccontextmanager
async def remote_desk(
    address: BusAddress, clients: Mapping[str, RemoteClient], rights: BlobRights
) -> AsyncIterator[None]:
    """Serve participants on other machines, on a bus of its own. Raises `BadKeys`, `BusNotReady`."""
    assert address.keyring is not None and address.senders is not None
    folder, keyring, declarations = address.senders.parent, Keyring(address.keyring), Declarations(address.senders)
    blobs, grants_key = BlobStore(folder / "blobs"), partial(read_public, folder / FOLDER)
    desk = RemoteDesk(clients, declarations, keyring, blobs, rights, grants_key)
    async with bus_of(PROXY, address, folder) as bus, desk.serving(bus):
        yield


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
