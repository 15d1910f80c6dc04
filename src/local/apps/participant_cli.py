"""The command `python -m local.apps.participant`: one participant by hand, beside a system that runs already."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer
from setproctitle import setproctitle

from local.apps.backend import ollama_url
from local.apps.command_line import BusOption, ConfigDir, DataDir, LogLevel, exit_status, new_app
from local.apps.overrides import overrides_for
from local.apps.participant import ParticipantSpec, find_class, open_bus, serve
from local.apps.run_directory import NotRunning, RunDirectory, is_encrypted
from local.bus.address import BusAddress
from local.config import SystemConfig, layers_for, load_system, short_names
from local.config_fault import suggestion
from local.config_models import Endpoint, Routing, load_models
from local.environment import data_dir as find_data_dir
from local.environment import environment
from local.errors import ConfigError, LocalError, MalformedFrame
from local.protocol.envelope import Envelope
from local.protocol.messages import ParticipantStatus
from local.runtime.logs import configure_logging
from local.runtime.participant import Resources
from local.runtime.presence import LOOK_SECONDS

app = new_app()
log = logging.getLogger(__name__)

EXIT_INTERRUPTED = 130
LISTEN_SECONDS = 1.5 * LOOK_SECONDS  # a newcomer hears from everybody alive within one look


class NameTaken(LocalError):
    """A participant of this name lives already."""

    kind = "name_taken"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM. The exit status is 2, with one line, for whatever the user can mend, and 130 for
    Ctrl-C before the participant serves."""
    os.umask(0o077)  # what it keeps is for this user's eyes
    return exit_status(app, sys.argv[1:] if arguments is None else arguments, "python -m local.apps.participant")


@app.command()
def participant(
    target: Annotated[str, typer.Argument(help=f"{', '.join(short_names())} or package.module:Class")],
    bus: BusOption = None,
    data_dir: DataDir = None,
    config_dir: ConfigDir = None,
    log_level: LogLevel = "info",
) -> None:
    """Run one participant beside a running LoCAL2."""
    layers, directory = layers_for(config_dir), RunDirectory(find_data_dir(data_dir))
    system = load_system(layers, {}, environment())
    part = _part(target, bus, directory, layers, system)
    name = find_class(part.target, part.python_path).name
    setproctitle(f"local2 {name}")
    configure_logging(name, log_level, system.log_path(directory.data_dir))
    try:
        asyncio.run(_run(part, name))
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _part(
    name: str, addresses: str | None, directory: RunDirectory, layers: Sequence[Path], system: SystemConfig
) -> ParticipantSpec:
    bus = _bus(addresses, directory, system)
    try:
        facts = directory.facts()
        routing = Routing.model_validate(facts.routing)
        resources = Resources(
            directory.data_dir,
            routing,
            facts.model_backend,
            chat_model=facts.chat_model,
            chat_num_ctx=facts.chat_num_ctx,
            ollama_url=facts.ollama_url,
            layers=tuple(layers),
            workspace=Path(facts.workspace) if facts.workspace else None,
        )
    except NotRunning:
        if addresses is None:
            raise
        url = ollama_url(system, load_models(layers))
        resources = Resources(
            directory.data_dir,
            Routing.to_one("ollama", Endpoint(kind="ollama", url=url)),
            "ollama",
            ollama_url=url,
            layers=tuple(layers),
        )
    target = short_names().get(name, name)
    if ":" not in target:
        known = suggestion(target, [*short_names(), "package.module:Class"])
        raise ConfigError(f"unknown participant {target!r}; {known}")
    return ParticipantSpec(
        target, bus, resources, tuple(layers), system.python_path, overrides_for(target, system, {}, {})
    )


def _bus(addresses: str | None, directory: RunDirectory, system: SystemConfig) -> BusAddress:
    if addresses is None:
        return directory.running_bus()
    publish_to, comma, subscribe_to = addresses.partition(",")
    if not comma:
        raise ConfigError(f"--bus: expected two addresses as PUB,SUB, found {addresses!r}")
    return directory.named_bus(publish_to, subscribe_to, curve=is_encrypted(publish_to, system))


async def _run(part: ParticipantSpec, name: str) -> None:
    stop = asyncio.Event()

    def begin() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):  # until now they end it at once: it has nothing in hand
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        log.info("%s serves (Ctrl-C stops it)", name)

    await _refuse_second(part, name)
    await serve(part, stop, begin)


async def _refuse_second(part: ParticipantSpec, name: str) -> None:
    """Listen for as long as everybody alive needs to be heard. Raises `NameTaken`."""
    taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def hear(envelope: Envelope) -> None:
        try:
            status = ParticipantStatus.decode(envelope.payload)
        except MalformedFrame as error:
            bus.reject(str(error), envelope.payload)
            return
        is_another = envelope.instance != bus.instance
        if is_another and status.name == name and status.state != "stopping" and not taken.done():
            taken.set_result(status.pid)

    def newcomer(state: Literal["starting", "stopping"]) -> ParticipantStatus:
        return ParticipantStatus(name=bus.sender, kind="door", pid=os.getpid(), instance=bus.instance, state=state)

    async with open_bus(f"{name} by hand", part.bus, part.resources.data_dir) as bus:
        bus.subscribe(ParticipantStatus.subject, hear)
        await bus.ready()
        bus.post(newcomer("starting"))
        with suppress(TimeoutError):
            pid = await asyncio.wait_for(taken, LISTEN_SECONDS)
            bus.post(newcomer("stopping"))
            raise NameTaken(f"{name} is served already (process {pid}); stop that one first, or use another name")
