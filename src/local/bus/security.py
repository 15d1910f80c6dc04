"""The authentication of senders: each participant's declaration of what it may publish, and the check of received
messages against it.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

import zmq
from pydantic_core import from_json
from zmq.utils import z85

from local.bus.envelope import Envelope
from local.bus.message import MAIN_RESPONDENT, covers, message_classes
from local.bus.messages import BusProbe, ParticipantStatus
from local.core.bus_address import BusAddress, CurveKeys
from local.core.errors import DeclarationNotWritten, LocalError, MalformedFrame

if TYPE_CHECKING:
    from nacl.public import Box

# The keys of a tcp bus: a pair for the proxy and one for each name that takes part.

SERVER_FILE = "bus.keys"
SUFFIX = ".keys"
SETTLED_NS = 1_000_000_000  # a folder that changed later than this ago may change again and keep its time
_KEY = re.compile(r"[0-9a-zA-Z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # Z85, ZeroMQ RFC 32


class BadKeys(LocalError):
    """A key file that is damaged, or missing and cannot be created."""

    kind = "bad_keys"


class Keyring:
    """The folder with the keys of a tcp bus: private to its owner, with a file of mode 0600 for each key pair, created
    when first needed.

    `bus.keys` is the proxy's: its public and its secret key. `<name>.keys` is a participant's or a client's: its own
    public and secret key, and the proxy's public one, so that another machine needs only this file. After its file is
    removed here, a client is no longer admitted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, str] = {}
        self._changed_at: int | None = None

    @property
    def is_there(self) -> bool:
        """Whether a system has begun to use this folder."""
        return (self._folder / SERVER_FILE).exists()

    def server(self) -> CurveKeys:
        """The proxy's. Raises `BadKeys`."""
        path = self._folder / SERVER_FILE
        if not path.exists():
            self._make(path, *_pair())
        public, secret, *_ = _read(path, 2)
        return CurveKeys(public, secret, public)

    def of(self, name: str) -> CurveKeys:
        """The keys of a participant or a client. Raises `BadKeys`."""
        path = self._folder / f"{quote(name, safe='')}{SUFFIX}"
        if path.name == SERVER_FILE:
            raise BadKeys(f"{name!r} is the name of the proxy; choose another one")
        if not path.exists():
            self._make(path, *_pair(), self.server().public)
        public, secret, server_public, *_ = _read(path, 3)
        return CurveKeys(public, secret, server_public)

    def public_key(self, name: str) -> str | None:
        """The public key of a name; None if the keyring has no keys of it."""
        path = self._folder / f"{quote(name, safe='')}{SUFFIX}"
        return _read(path, 3)[0] if path.exists() else None

    def name_of(self, public_key: str) -> str | None:
        """Return the name that a public key belongs to; None if it is not in the keyring."""
        changed_at = self._folder.stat().st_mtime_ns
        if public_key not in self._names or changed_at != self._changed_at:
            is_settled = time.time_ns() - changed_at > SETTLED_NS
            self._names, self._changed_at = dict(self._known()), changed_at if is_settled else 0
        return self._names.get(public_key)

    def _known(self) -> list[tuple[str, str]]:
        found = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            if path.name != SERVER_FILE:
                with suppress(BadKeys):
                    found.append((_read(path, 3)[0], unquote(path.name.removesuffix(SUFFIX))))
        return found

    def _make(self, path: Path, *keys: str) -> None:
        """Write a file, whole and once: of two who do so at the same time the first one counts."""
        part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write("\n".join(keys) + "\n")
            with suppress(FileExistsError):
                os.link(part, path)
            part.unlink()
        except OSError as error:
            raise BadKeys(f"the keys {path} cannot be written: {error}") from None


def with_keys(address: BusAddress, name: str) -> BusAddress:
    """An address for one who takes part under that name. Raises `BadKeys`."""
    return address if address.keyring is None else replace(address, keys=Keyring(address.keyring).of(name))


def seal(data: bytes, secret_key: str, public_key: str) -> str:
    """Encrypt with one's own secret key for the holder of a key of the keyring; returns base64."""
    return b64encode(_box(secret_key, public_key).encrypt(data)).decode()


def unseal(sealed: str, secret_key: str, public_key: str) -> bytes:
    """Undo `seal`, of the holder of a public key alone. Raises `MalformedFrame`."""
    from nacl.exceptions import CryptoError

    try:
        return _box(secret_key, public_key).decrypt(b64decode(sealed, validate=True))
    except (ValueError, CryptoError):
        raise MalformedFrame("it is not encrypted for this participant by the one that sent it") from None


def _box(secret_key: str, public_key: str) -> Box:
    from nacl.public import Box, PrivateKey, PublicKey  # takes long, and is rarely needed

    return Box(PrivateKey(z85.decode(secret_key)), PublicKey(z85.decode(public_key)))


def _pair() -> list[str]:
    return [key.decode() for key in zmq.curve_keypair()]


def _read(path: Path, least: int) -> list[str]:
    keys = path.read_text(errors="replace").split() if path.exists() else []
    if len(keys) < least or not all(_KEY.fullmatch(key) for key in keys):
        number = "two" if least == 2 else "three"
        raise BadKeys(f"{path} does not hold {number} keys of 40 characters; remove it and start again")
    return keys


MAX_PROCESSES = 4096
MAX_SUBJECTS = 4096  # of one process
RESPONDENT = "respondent_id"
UNKNOWN_SECONDS = 1.0  # before an undeclared name is looked up again


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of one participant: the subjects and families that it may publish, and the durable consumers that
    it serves.

    A participant that answers queries does so as one respondent, whose id is `speaks_as`.
    """

    says: frozenset[str]
    serves: frozenset[str] = frozenset()
    speaks_as: str | None = None

    def allows(self, subject: str) -> bool:
        """Whether the declaration allows publishing on a subject, or on a whole family."""
        return any(covers(known, subject) for known in self.says)

    def covers(self, other: Declaration) -> bool:
        """Whether it allows everything that another declaration does."""
        return all(map(self.allows, other.says)) and other.serves <= self.serves and other.speaks_as == self.speaks_as

    def encode(self, name: str) -> str:
        """The declaration as JSON, the same for equal ones."""
        value = {"name": name, "says": sorted(self.says), "serves": sorted(self.serves), "speaks_as": self.speaks_as}
        return json.dumps(value, indent=1) + "\n"

    @classmethod
    def decode(cls, text: str, name: str) -> Self:
        """Parse the output of `encode` for that name. Raises `ValueError`, `KeyError` or `TypeError` for
        invalid text.
        """
        value = json.loads(text)
        if value["name"] != name:
            raise ValueError(name)  # a file system that takes no notice of capitals
        return cls(frozenset(map(str, value["says"])), frozenset(map(str, value["serves"])), value.get("speaks_as"))


class Declarations:
    """The folder with the declarations of all participants, a file per name. Every process writes its own file before
    it publishes, so that every receiver finds it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, declaration: Declaration) -> None:
        """Write the declaration if it has changed, so that a full disk does not stop a known participant.

        Raises `DeclarationNotWritten`.
        """
        path, text = self._path(name), declaration.encode(name)
        try:
            if path.exists() and path.read_text() == text:
                return
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _replace(path, text)
        except OSError as error:
            raise DeclarationNotWritten(f"{path}: the declaration of {name} cannot be written: {error}") from None

    def read(self, name: str) -> Declaration | None:
        """Return the declaration of a name; None if it is missing or unreadable."""
        try:
            return Declaration.decode(self._path(name).read_text(), name)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def names(self) -> list[str]:
        """Return who has declared something."""
        return [unquote(path.stem) for path in self.folder.glob("*.json")]

    def _path(self, name: str) -> Path:
        return self.folder / f"{quote(name, safe='')}.json"


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises `OSError`."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


class SenderGuard:
    """A check that senders keep to their declarations.

    A declaration is read once per process of a sender and is valid as long as that process sends; a message then costs
    two look-ups in a dict. `declared(name)` returns None for a name without a declaration; `clock` returns seconds.
    """

    def __init__(
        self, declared: Callable[[str], Declaration | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._declared, self._clock = declared, clock
        self._processes: dict[tuple[str, str], tuple[Declaration, dict[str, bool]]] = {}  # by sender and instance
        self._unknown: dict[str, float] = {}  # by name, when to look again

    def fault(self, envelope: Envelope) -> str | None:
        """Why an envelope is to be refused, for a person to read; None if it is not."""
        if not self.may_publish(envelope.sender, envelope.instance, envelope.subject):
            return f"{envelope.sender[:80]} has not declared the subject {envelope.subject}"
        known = self._processes.get((envelope.sender, envelope.instance))
        own = known and known[0].speaks_as
        if own and _names_respondent(envelope.subject) and (named := _respondent_of(envelope)) != own:
            return f"{envelope.sender[:80]} answers as {own}, but has published as {named[:80]}"
        return None

    def may_publish(self, sender: str, instance: str, subject: str) -> bool:
        """Whether a process may publish on a subject. Probes, which only their own bus uses, are open to
        every process.
        """
        known = self._processes.get((sender, instance)) or self._look_up(sender, instance)
        if known is None:
            return subject.startswith(BusProbe.subject)
        declaration, verdicts = known
        verdict = verdicts.get(subject)
        if verdict is None:
            if len(verdicts) >= MAX_SUBJECTS:
                verdicts.clear()
            verdict = verdicts[subject] = declaration.allows(subject) or subject.startswith(BusProbe.subject)
        return verdict

    def may_serve(self, sender: str, instance: str, consumer: str) -> bool:
        """Whether a process may receive and acknowledge the messages of a durable consumer."""
        known = self._processes.get((sender, instance)) or self._look_up(sender, instance)
        return known is not None and consumer in known[0].serves

    def _look_up(self, sender: str, instance: str) -> tuple[Declaration, dict[str, bool]] | None:
        now = self._clock()
        if now < self._unknown.get(sender, 0.0):
            return None
        declaration = self._declared(sender)
        if declaration is None:
            if len(self._unknown) >= MAX_PROCESSES:
                self._unknown.clear()
            self._unknown[sender] = now + UNKNOWN_SECONDS
            return None
        self._unknown.pop(sender, None)
        if len(self._processes) >= MAX_PROCESSES:
            self._processes.clear()
        known = self._processes[sender, instance] = (declaration, {})
        return known


def _names_respondent(subject: str) -> bool:
    """Whether messages on a subject name a respondent. Statuses do not, which spares a process that receives nothing
    else the import of all messages.
    """
    return subject != ParticipantStatus.subject and subject.startswith(_of_respondents())


@cache
def _of_respondents() -> tuple[str, ...]:
    """The subjects and families of the messages that name a respondent."""
    return tuple(kind.subject for kind in message_classes() if RESPONDENT in kind.model_fields)


def _respondent_of(envelope: Envelope) -> str:
    """Return the respondent that a message names, by default the main one. An unreadable payload is refused later by
    its receivers.
    """
    try:
        payload = from_json(envelope.payload)
    except ValueError:
        payload = {}
    return str(payload.get(RESPONDENT, MAIN_RESPONDENT)) if isinstance(payload, dict) else MAIN_RESPONDENT
