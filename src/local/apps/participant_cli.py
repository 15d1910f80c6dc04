"""The command `python -m local.apps.participant`: one participant by hand, beside a system that runs already."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from setproctitle import setproctitle

from local.apps.backend import ollama_url
from local.apps.overrides import overrides_for
from local.apps.participant import Part, find_class, open_bus, serve
from local.apps.run_directory import NotRunning, RunDirectory
from local.bus.address import BusAddress
from local.config import SystemConfig, data_dir, environment, layers_for, load_system, short_names
from local.config_fault import suggestion
from local.config_models import Endpoint, Routing, load_models
from local.errors import ConfigError, LocalError, MalformedFrame
from local.protocol.envelope import Envelope
from local.protocol.messages import ParticipantStatus
from local.runtime.logs import configure_logging
from local.runtime.participant import Resources
from local.runtime.participant_runner import STATUS_SECONDS

log = logging.getLogger(__name__)

EXIT_BAD_USE, EXIT_INTERRUPTED = 2, 130
LISTEN_SECONDS = 1.5 * STATUS_SECONDS  # everybody alive is heard within one interval


class NameTaken(LocalError):
    """A participant of this name lives already."""

    kind = "name_taken"


class _Parser(argparse.ArgumentParser):
    """One line for a bad argument, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_USE, f"local2: {message}; see --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM. The exit status is 2, with one line, for whatever the user can mend, and 130 for
    Ctrl-C before it serves."""
    given = _arguments(arguments)
    try:
        part = _part(given)
        name = find_class(part.target, part.python_path).name
        setproctitle(f"local2 {name}")
        configure_logging(name, given.log_level)
        asyncio.run(_run(part, name))
    except LocalError as error:
        sys.stderr.write(f"local2: {error}\n")
        return EXIT_BAD_USE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser("python -m local.apps.participant", description="Run one participant beside a running LoCAL2.")
    parser.add_argument("target", help=f"{', '.join(short_names())} or package.module:Class")
    parser.add_argument("--bus", metavar="PUB,SUB", help="the bus's two addresses (default: those of the system)")
    parser.add_argument("--data-dir", type=Path, help="the data of the running system (default: LOCAL2_DATA_DIR)")
    parser.add_argument("--config-dir", type=Path, help="your settings (default: LOCAL2_CONFIG_DIR)")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser.parse_args(arguments)


def _part(given: argparse.Namespace) -> Part:
    layers = layers_for(given.config_dir)
    system = load_system(layers, {}, environment())
    directory = RunDirectory(data_dir(given.data_dir))
    bus = _bus(given.bus, directory, system)
    try:
        facts = directory.facts()
        routing = Routing.model_validate(facts.routing)
        resources = Resources(
            directory.data_dir,
            routing,
            facts.model_backend,
            chat_model=facts.chat_model,
            chat_num_ctx=facts.chat_num_ctx,
        )
    except NotRunning:
        if given.bus is None:
            raise
        url = ollama_url(system, load_models(layers))
        resources = Resources(directory.data_dir, Routing.to_one("ollama", Endpoint(kind="ollama", url=url)), "ollama")
    target = short_names().get(given.target, given.target)
    if ":" not in target:
        known = suggestion(target, [*short_names(), "package.module:Class"])
        raise ConfigError(f"unknown participant {target!r}; {known}")
    return Part(target, bus, resources, tuple(layers), system.python_path, overrides_for(target, system, {}, {}))


def _bus(addresses: str | None, directory: RunDirectory, system: SystemConfig) -> BusAddress:
    if addresses is None:
        return directory.running_bus()
    publish_to, comma, subscribe_to = addresses.partition(",")
    if not comma:
        raise ConfigError(f"--bus: expected two addresses as PUB,SUB, found {addresses!r}")
    return directory.bus_address(
        system.model_copy(update={"bus_pub_address": publish_to, "bus_sub_address": subscribe_to})
    )


async def _run(part: Part, name: str) -> None:
    stop = asyncio.Event()

    def begin() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):  # until now they end it at once: it has nothing in hand
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        log.info("%s serves (Ctrl-C stops it)", name)

    await _refuse_second(part, name)
    await serve(part, stop, begin)


async def _refuse_second(part: Part, name: str) -> None:
    """Listen for as long as everybody alive needs to be heard. Raises `NameTaken`."""
    taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def hear(envelope: Envelope) -> None:
        try:
            status = ParticipantStatus.decode(envelope.payload)
        except MalformedFrame as error:
            bus.reject(str(error), envelope.payload)
            return
        if status.name == name and status.state != "stopping" and not taken.done():
            taken.set_result(status.pid)

    async with open_bus(f"{name} by hand", part.bus, part.resources.data_dir) as bus:
        bus.subscribe(ParticipantStatus.subject, hear)
        await bus.ready()
        with suppress(TimeoutError):
            pid = await asyncio.wait_for(taken, LISTEN_SECONDS)
            raise NameTaken(f"{name} is served already (process {pid}); stop that one first, or use another name")
