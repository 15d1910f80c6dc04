"""Who may say what: each participant's own declaration, and whether a message that has arrived keeps to it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self
from urllib.parse import quote

from pydantic_core import from_json

from local.errors import DeclarationNotWritten
from local.protocol.bus_messages import BusProbe
from local.protocol.delivery_classes import message_classes
from local.protocol.envelope import Envelope
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import ParticipantStatus
from local.protocol.subjects import covers

MAX_PROCESSES = 4096
MAX_SUBJECTS = 4096  # of one process
RESPONDENT = "respondent_id"
UNKNOWN_SECONDS = 1.0  # before a name that nobody has declared is looked up again


@dataclass(frozen=True, slots=True)
class Declaration:
    """What one participant may publish, whole subjects and families, and which durable consumers it serves.

    One that answers queries does all that as one respondent, whose id is `speaks_as`.
    """

    says: frozenset[str]
    serves: frozenset[str] = frozenset()
    speaks_as: str | None = None

    def allows(self, subject: str) -> bool:
        """Whether the declaration lets somebody publish on a subject, or on a whole family."""
        return any(covers(known, subject) for known in self.says)

    def encode(self, name: str) -> str:
        """The declaration as JSON, the same for equal ones."""
        value = {"name": name, "says": sorted(self.says), "serves": sorted(self.serves), "speaks_as": self.speaks_as}
        return json.dumps(value, indent=1) + "\n"

    @classmethod
    def decode(cls, text: str, name: str) -> Self:
        """What `encode` has made for that name. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        value = json.loads(text)
        if value["name"] != name:
            raise ValueError(name)  # a file system that takes no notice of capitals
        return cls(frozenset(map(str, value["says"])), frozenset(map(str, value["serves"])), value.get("speaks_as"))


class Declarations:
    """A folder with a file for each name. Every process writes its own before it says anything, so that whoever hears
    it finds it there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, declaration: Declaration) -> None:
        """Declare, unless it is the same as before: a full disk stops nobody who has been here.

        Raises `DeclarationNotWritten`.
        """
        path, text = self._path(name), declaration.encode(name)
        try:
            if path.exists() and path.read_text() == text:
                return
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _replace(path, text)
        except OSError as error:
            raise DeclarationNotWritten(f"{path}: what {name} may say cannot be written down: {error}") from None

    def read(self, name: str) -> Declaration | None:
        """What a name has declared; None where there is nothing that can be read."""
        try:
            return Declaration.decode(self._path(name).read_text(), name)
        except (OSError, ValueError, KeyError, TypeError):
            return None

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
    """Tells whether senders keep to what they have declared.

    A declaration is read once for each process of a sender, and counts for as long as that speaks: two look-ups in a
    dict are what a message costs. `declared(name)` is None for a name that nobody has declared; `clock` gives seconds.
    """

    def __init__(
        self, declared: Callable[[str], Declaration | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._declared, self._clock = declared, clock
        self._processes: dict[tuple[str, str], tuple[Declaration, dict[str, bool]]] = {}  # by sender and instance
        self._unknown: dict[str, float] = {}  # by name, when to look again

    def fault(self, envelope: Envelope) -> str | None:
        """Why an envelope is to be refused, for a person to read; None if it is not."""
        if not self.may_say(envelope.sender, envelope.instance, envelope.subject):
            return f"{envelope.sender[:80]} has not declared that it says {envelope.subject}"
        known = self._processes.get((envelope.sender, envelope.instance))
        own = known and known[0].speaks_as
        if own and _names_respondent(envelope.subject) and (named := _respondent_of(envelope)) != own:
            return f"{envelope.sender[:80]} answers as {own}, and has spoken as {named[:80]}"
        return None

    def may_say(self, sender: str, instance: str, subject: str) -> bool:
        """Whether a process may publish on a subject. A probe is of use to its own bus alone, so anybody may."""
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
        """Whether a process may take and acknowledge what a durable consumer is given."""
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
    """Whether the messages on a subject do. A status does not: whoever hears nothing else imports no other messages."""
    return subject != ParticipantStatus.subject and subject.startswith(_of_respondents())


@cache
def _of_respondents() -> tuple[str, ...]:
    """The subjects and families of the messages that name a respondent."""
    return tuple(kind.subject for kind in message_classes() if RESPONDENT in kind.model_fields)


def _respondent_of(envelope: Envelope) -> str:
    """Whom a message names; the main one where it names nobody. What cannot be read is refused by those who read it."""
    try:
        payload = from_json(envelope.payload)
    except ValueError:
        payload = {}
    return str(payload.get(RESPONDENT, MAIN_RESPONDENT)) if isinstance(payload, dict) else MAIN_RESPONDENT
