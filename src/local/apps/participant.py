"""Runs one participant: as a child of the supervisor, or by hand beside a running system.

By hand: `local2 participant my_tools.dice:DiceTool` (see `--help`).
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO, cast

from local.bus.address import BusAddress
from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.keyring import with_keys
from local.bus.reject_log import FILE_NAME as REJECTED
from local.bus.reject_log import RejectLog
from local.bus.sender_guard import Declaration, Declarations, SenderGuard
from local.bus.transport import open_transport
from local.config import load
from local.environment import environment
from local.errors import ConfigError, DeclarationNotWritten, StoreGone
from local.journal.client.journal_client import JournalClient
from local.runtime.declaring import declaration_of, what_everybody_says
from local.runtime.error_place import explained
from local.runtime.participant import Kind, Participant, Resources
from local.runtime.participant_runner import ParticipantRunner
from local.runtime.supervisor import Lifeline
from local.secrets.masked_stream import MaskedStream
from local.secrets.secret_mask import secret_mask
from local.secrets.secret_settings import with_secrets
from local.secrets.secret_store import SecretStore

log = logging.getLogger(__name__)

ROOM_SECONDS = 0.5  # between two looks whether there is room
SECRETS = ("api_token", "brave_api_key", "tavily_api_key", "hf_token")


@dataclass(frozen=True, slots=True)
class ParticipantSpec:
    """Everything that makes one participant: its class, where its settings come from, what it may use."""

    target: str  # "package.module:Class"
    bus: BusAddress
    resources: Resources
    layers: tuple[Path, ...]
    python_path: tuple[Path, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    ollama_debug: bool = False
    child: str = ""  # what the supervisor calls it


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
    """Wait for room for what a participant declares, as its stores wait for theirs."""
    said = False
    while True:
        try:
            return attempt()
        except DeclarationNotWritten as error:
            if not said:
                log.warning("%s", error)
        said = True
        await asyncio.sleep(ROOM_SECONDS)


def open_bus(
    sender: str,
    address: BusAddress,
    data_dir: Path,
    *,
    journaled: bool = False,
    declaration: Declaration | None = None,
) -> Bus:
    """A bus with the data directory's blob store and file of refused frames, for one who has declared what it says:
    without a `declaration` no more than everybody does. Raises `DeclarationNotWritten`, `BadKeys`."""
    if address.senders is not None:
        Declarations(address.senders).write(sender, declaration or what_everybody_says())
    return bus_of(sender, address, data_dir, journaled=journaled)


def bus_of(sender: str, address: BusAddress, data_dir: Path, *, journaled: bool = False) -> Bus:
    """The bus of one who declares before the first word what it says. Raises `BadKeys`."""
    return Bus(
        sender,
        open_transport(with_keys(address, sender)),
        rejects=RejectLog(data_dir / REJECTED),
        blobs=BlobStore(data_dir / "blobs"),
        durability=JournalClient() if journaled else None,
        guard=None if address.senders is None else SenderGuard(Declarations(address.senders).read),
    )


def find_class(target: str, python_path: tuple[Path, ...] = ()) -> type[Participant]:
    """Import "package.module:Class". Raises `ConfigError` that says what is missing."""
    for folder in python_path:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    module, _, name = target.partition(":")
    try:
        imported = importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a user's module may raise anything while it is imported
        below = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # this call is no news
        raise ConfigError(f"participant {target}: cannot import {module}: {explained(below)}") from None
    found = getattr(imported, name, None)
    if not (isinstance(found, type) and issubclass(found, Participant)):
        raise ConfigError(f"participant {target}: {module} has no Participant class {name!r}")
    return found


def make(part: ParticipantSpec) -> Participant:
    """The participant, with its settings read and its services built: here, in its process, the secrets that its own
    settings name have their values, and for agents and the model keeper the keys of model servers. Raises
    `ConfigError`."""
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


if __name__ == "__main__":
    from local.apps.participant_cli import main

    sys.exit(main())
