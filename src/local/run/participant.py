"""Runs one participant: as a child of the supervisor, or by hand beside a running system.

By hand: `local2 participant my_tools.dice:DiceTool` (see `--help`).
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO, cast

import typer
from setproctitle import setproctitle

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.elsewhere import RemoteBlobs, declare
from local.bus.envelope import Envelope
from local.bus.messages import ParticipantStatus
from local.bus.receiving import FILE_NAME as REJECTED
from local.bus.receiving import RejectLog
from local.bus.security import Declaration, Declarations, SenderGuard, with_keys
from local.bus.zeromq import open_transport
from local.cli.main import BusOption, ConfigDir, DataDir, LogLevel, exit_status, new_app
from local.core.bus_address import BusAddress
from local.core.capability import participants
from local.core.config import SystemConfig, layers_for, load, load_system
from local.core.config_file import suggestion
from local.core.data_dir import KEYS, NotRunning, RunDirectory, is_encrypted
from local.core.database import OpeningLog
from local.core.environment import data_dir as find_data_dir
from local.core.environment import environment
from local.core.errors import ConfigError, DeclarationNotWritten, LocalError, MalformedFrame, StoreGone
from local.core.routing import Endpoint, Routing
from local.core.secrets import MaskedStream, SecretStore, secret_mask, with_secrets
from local.journal.client import JournalClient
from local.journal.config import JournalConfig
from local.models.settings import load_models, ollama_url
from local.run.overrides import overrides_for
from local.runtime.child import Lifeline
from local.runtime.logs import configure_logging
from local.runtime.participant import Kind, Participant, Resources, declaration_of, what_everybody_says
from local.runtime.runner import LOOK_SECONDS, ParticipantRunner, explained
from local.tools.grants import FOLDER, keep_public

log = logging.getLogger(__name__)

ROOM_SECONDS = 0.5  # between two looks whether there is room
SECRETS = ("api_token", "brave_api_key", "tavily_api_key", "hf_token")


@dataclass(frozen=True, slots=True)
class ParticipantSpec:
    """The description of one participant to run: its class, the source of its settings, and its resources."""

    target: str  # "package.module:Class"
    bus: BusAddress
    resources: Resources
    layers: tuple[Path, ...]
    python_path: tuple[Path, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    ollama_debug: bool = False
    child: str = ""  # its name at the supervisor


async def run(lifeline: Lifeline, part: ParticipantSpec) -> None:
    """The supervisor's child: serve until it is to stop."""
    if not part.resources.data_dir.is_dir():
        raise StoreGone(part.resources.data_dir)
    if part.ollama_debug:
        logging.getLogger("local.models").setLevel(logging.DEBUG)
    async with lifeline.serving() as stop:
        await serve(part, stop, lifeline.ready)


async def serve(part: ParticipantSpec, stop: asyncio.Event, on_ready: Callable[[], object]) -> None:
    """Make the participant and serve it until `stop` is set."""
    participant = make(part)
    if secret_mask.names and not isinstance(sys.stdout, MaskedStream):
        sys.stdout, sys.stderr = cast("TextIO", MaskedStream(sys.stdout)), cast("TextIO", MaskedStream(sys.stderr))
    declaration = declaration_of(type(participant))
    folder, journaled = part.resources.data_dir, participant.journaled
    bus = await _open_patiently(
        lambda: open_bus(participant.name, part.bus, folder, journaled=journaled, declaration=declaration)
    )
    await ParticipantRunner(participant, bus, part.child).run(stop, on_ready)


async def _open_patiently(attempt: Callable[[], Bus]) -> Bus:
    """Wait until the disk has room for a participant's declaration, as its stores wait for theirs."""
    waiting = OpeningLog()
    while True:
        try:
            return attempt()
        except DeclarationNotWritten as error:
            waiting.report(error)
        await asyncio.sleep(ROOM_SECONDS)


def open_bus(
    sender: str,
    address: BusAddress,
    data_dir: Path,
    *,
    journaled: bool = False,
    declaration: Declaration | None = None,
) -> Bus:
    """Return a bus with the data directory's blob store and file of refused frames, for a client with a `declaration`;
    without one it may publish only what every client may. Raises `DeclarationNotWritten`, `BadKeys`.
    """
    if address.senders is not None:
        Declarations(address.senders).write(sender, declaration or what_everybody_says())
    return bus_of(sender, address, data_dir, journaled=journaled)


def bus_of(sender: str, address: BusAddress, data_dir: Path, *, journaled: bool = False) -> Bus:
    """Return the bus of a client that declares its subjects before its first message. Raises `BadKeys`."""
    own = with_keys(address, sender)
    remote = RemoteBlobs(own.keys) if address.is_elsewhere and own.keys is not None else None
    bus = Bus(
        sender,
        open_transport(own),
        rejects=RejectLog(data_dir / REJECTED),
        blobs=remote or BlobStore(data_dir / "blobs"),
        durability=JournalClient() if journaled else None,
        guard=None if address.senders is None else SenderGuard(Declarations(address.senders).read),
    )
    if remote is not None:
        remote.bus = bus
    return bus


def find_class(target: str, python_path: tuple[Path, ...] = ()) -> type[Participant]:
    """Import "package.module:Class". Raises `ConfigError` that names the missing part."""
    for folder in python_path:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    module, _, name = target.partition(":")
    try:
        imported = importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a user's module may raise anything while it is imported
        below = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # without this call
        raise ConfigError(f"participant {target}: cannot import {module}: {explained(below)}") from None
    found = getattr(imported, name, None)
    if not (isinstance(found, type) and issubclass(found, Participant)):
        raise ConfigError(f"participant {target}: {module} has no Participant class {name!r}")
    return found


def make(part: ParticipantSpec) -> Participant:
    """Return the participant with its settings and services: in its process, the secrets that its own settings name
    have their values, and agents and the model manager get the keys of model servers. Raises `ConfigError`.
    """
    kind = find_class(part.target, part.python_path)
    variables, file = environment(), kind.settings or kind.name
    given = {key: getattr(variables, key) for key in SECRETS if key in kind.Config.model_fields}
    secret_of = SecretStore(part.resources.data_dir).get
    config = with_secrets(load(file, kind.Config, part.layers, {**given, **part.overrides}), file, secret_of)
    resources = part.resources
    if resources.routing is not None and (kind.kind is Kind.AGENT or kind.settings == "models"):
        resources = replace(resources, routing=with_secrets(resources.routing, "models", secret_of))
    participant = kind.build(config, resources)
    participant.lent(resources)
    return participant


# The command `python -m local.run.participant`: one participant by hand, beside a system that runs already.

app = new_app()

EXIT_INTERRUPTED = 130
DECLARE_SECONDS = 10.0
LISTEN_SECONDS = 1.5 * LOOK_SECONDS  # a new participant receives a status of every living one within one look


class NameTaken(LocalError):
    """A running participant already has this name."""

    kind = "name_taken"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM. The exit status is 2, with one line, for errors that the user can correct, and 130
    for Ctrl-C before the participant serves.
    """
    os.umask(0o077)  # its files are for this user alone
    return exit_status(app, sys.argv[1:] if arguments is None else arguments, "python -m local.run.participant")


@app.command()
def participant(
    target: Annotated[str, typer.Argument(help=f"{', '.join(participants())} or package.module:Class")],
    bus: BusOption = None,
    data_dir: DataDir = None,
    config_dir: ConfigDir = None,
    log_level: LogLevel = "info",
) -> None:
    """Run one participant beside a running system."""
    layers, directory = layers_for(config_dir), RunDirectory(find_data_dir(data_dir))
    system = load_system(layers, {}, environment())
    part = _part(target, bus, directory, layers, system)
    name = find_class(part.target, part.python_path).name
    setproctitle(f"local2 {name}")
    log_file = system.log_path(directory.data_dir)
    if log_file is not None and part.bus.is_elsewhere:  # no system has made the folder here
        log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    configure_logging(name, log_level, log_file)
    try:
        asyncio.run(_run(part, name))
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _part(
    name: str, addresses: str | None, directory: RunDirectory, layers: Sequence[Path], system: SystemConfig
) -> ParticipantSpec:
    bus = _bus(addresses, directory, system)
    try:
        facts = directory.read()
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
            is_replicated=bool(load("journal", JournalConfig, layers).log),
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
    target = participants().get(name, name)
    if ":" not in target:
        known = suggestion(target, [*participants(), "package.module:Class"])
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
        for number in (signal.SIGINT, signal.SIGTERM):  # until now they end it at once: it has no work to finish
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        log.info("%s serves (Ctrl-C stops it)", name)

    await serve(await _joined(part, name), stop, begin)


async def _joined(part: ParticipantSpec, name: str) -> ParticipantSpec:
    """Listen long enough to receive a status of every living participant. On another machine than the bus's, declare
    the participant and keep the gatekeeper's public key. Raises `NameTaken`, `NotPermitted`.
    """
    taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def receive(envelope: Envelope) -> None:
        try:
            status = ParticipantStatus.decode(envelope.payload)
        except MalformedFrame as error:
            bus.reject(str(error), envelope.payload)
            return
        is_another = envelope.instance != bus.instance
        if is_another and name == status.name == envelope.sender and status.state != "stopping" and not taken.done():
            taken.set_result(status.pid)

    def newcomer(state: Literal["starting", "stopping"]) -> ParticipantStatus:
        return ParticipantStatus(name=bus.sender, kind="frontend", pid=os.getpid(), instance=bus.instance, state=state)

    folder = part.resources.data_dir
    sender = name if part.bus.is_elsewhere else f"{name} by hand"
    if part.bus.is_elsewhere and not (folder / KEYS / f"{name}.keys").exists():
        file = f"{KEYS}/{name}.keys"
        raise ConfigError(f"{folder / file} is missing; copy {file} from the data directory on the machine of the bus")
    async with open_bus(sender, part.bus, folder) as bus:
        bus.subscribe(ParticipantStatus.subject, receive)
        await bus.ready()
        bus.post(newcomer("starting"))
        with suppress(TimeoutError):
            pid = await asyncio.wait_for(taken, LISTEN_SECONDS)
            bus.post(newcomer("stopping"))
            raise NameTaken(f"{name} is already running (process {pid}); stop it first, or use another name")
        if not part.bus.is_elsewhere:
            return part
        asked_at = time.time()
        declared = await declare(bus, declaration_of(find_class(part.target, part.python_path)), DECLARE_SECONDS)
    ahead = declared.time - (asked_at + time.time()) / 2
    if declared.grants_key:
        keep_public(folder / FOLDER, bytes.fromhex(declared.grants_key))
    return replace(part, resources=replace(part.resources, clock_ahead=ahead))


if __name__ == "__main__":
    sys.exit(main())
