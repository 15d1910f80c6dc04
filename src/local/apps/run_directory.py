"""Where a running system can be found: one private directory for each data directory."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.apps.data_dir_lock import DataDirLock, unusable
from local.apps.owner_token import make_owner_token
from local.bus.address import BusAddress
from local.errors import ConfigError, LocalError
from local.runtime.held_folder import HeldFolder, clear_unheld

if TYPE_CHECKING:
    from local.config import SystemConfig

FACTS = "facts.json"
FILES = ("pub", "sub", FACTS, "facts.part")
YOUNG_SECONDS = 60.0
KEYS, SENDERS = "keys", "senders"  # folders of the data directory

log = logging.getLogger(__name__)


class NotRunning(LocalError):
    """No system runs on this data directory."""

    kind = "not_running"


def is_encrypted(publish_to: str, system: SystemConfig) -> bool:
    """Whether a bus at an address takes those alone who have keys."""
    return publish_to.startswith("tcp://") and system.bus_security == "curve"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a running system tells those who come later: its process, its model servers, its HTTP address.

    `routing` is `Routing` as JSON, `chat_model` the model that answers with a window of
    `chat_num_ctx` tokens. Holds no secret.
    """

    pid: int
    publish_to: str
    subscribe_to: str
    curve: bool
    model_url: str
    model_backend: str
    api_url: str | None
    routing: Mapping[str, Any] = field(default_factory=dict)
    chat_model: str = ""
    chat_num_ctx: int = 32_000
    ollama_url: str = ""
    workspace: str = ""  # the folder that the assistant works in


class RunDirectory:
    """Lock, sockets and facts of the system on `data_dir`; short, because a socket's path holds 107 bytes at most."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        try:
            base = Path(tempfile.gettempdir()) / f"local2-{os.getuid()}"
            self.path = base / hashlib.sha256(str(data_dir).encode()).hexdigest()[:12]
            for directory in (base, self.path):
                _make_private(directory)
        except OSError as error:
            why = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
            raise ConfigError(f"{why}; make the folder for temporary files writable, or set TMPDIR") from None

    @contextmanager
    def lock(self) -> Iterator[DataDirLock]:
        """Be the only system on this data directory. Raises `AlreadyRunning`, `ConfigError`."""
        with DataDirLock(self.data_dir) as lock, closing(HeldFolder(self.path)):
            try:
                yield lock
            finally:
                self._facts_file.unlink(missing_ok=True)

    def clear_others(self) -> int:
        """Remove the directories of systems that were killed or have never been started; returns how many. Young ones
        stay: whoever has made one may be about to use it."""
        made_before = time.time() - YOUNG_SECONDS
        others = [path for path in self.path.parent.iterdir() if path != self.path and _changed_at(path) < made_before]
        return sum(clear_unheld(path, FILES) for path in others if _facts_in(path) is None)

    def make_data_dir(self) -> None:
        """Make the data directory unless it is there; it is for this user's eyes alone. Raises `ConfigError`."""
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            mode = self.data_dir.stat().st_mode
            if mode & stat.S_ISVTX:  # such as /tmp, which is not ours to close
                raise ConfigError(f"{self.data_dir} is a folder of everybody's; give one of your own with --data-dir")
            if mode & 0o077:
                log.warning("%s was open to other users of this machine, and is closed to them now", self.data_dir)
                self.data_dir.chmod(0o700)
        except OSError as error:
            raise unusable(self.data_dir, error) from None

    def make_owner_token(self) -> None:
        """Have the owner's token in the data directory. Raises `ConfigError`."""
        try:
            make_owner_token(self.data_dir)
        except OSError as error:
            raise unusable(self.data_dir, error) from None

    def bus_address(self, system: SystemConfig) -> BusAddress:
        """Where the bus of this system is, and in which folders lie its keys and what everybody has declared."""
        publish_to = system.bus_pub_address or f"ipc://{self.path / 'pub'}"
        subscribe_to = system.bus_sub_address or f"ipc://{self.path / 'sub'}"
        return self._address(publish_to, subscribe_to, curve=is_encrypted(publish_to, system))

    def tell(self, facts: Facts) -> bool:
        """Write down what others need to find the system; False if there is no room for it."""
        part = self.path / "facts.part"
        try:
            part.write_text(json.dumps(asdict(facts)))
        except OSError:
            return False
        part.replace(self._facts_file)
        return True

    def facts(self) -> Facts:
        """What the running system has told. Raises `NotRunning`, also when it was killed and could not take it back."""
        facts = _facts_in(self.path)
        if facts is None:
            raise NotRunning(f"no system runs on {self.data_dir}; start one with `local2 run`")
        return facts

    def running_bus(self) -> BusAddress:
        """The bus of the running system. Raises `NotRunning`."""
        facts = self.facts()
        return self._address(facts.publish_to, facts.subscribe_to, curve=facts.curve)

    def named_bus(self, publish_to: str, subscribe_to: str, *, curve: bool) -> BusAddress:
        """The bus at these addresses. If it is not that of this directory's system, nobody here knows who says what
        there: that is for its proxy to check."""
        address = self._address(publish_to, subscribe_to, curve=curve)
        try:
            own = self.running_bus()
        except NotRunning:
            return replace(address, senders=None)
        is_own = (own.publish_to, own.subscribe_to) == (publish_to, subscribe_to)
        return address if is_own else replace(address, senders=None)

    def _address(self, publish_to: str, subscribe_to: str, *, curve: bool) -> BusAddress:
        keyring = self.data_dir / KEYS if curve else None
        return BusAddress(publish_to, subscribe_to, keyring=keyring, senders=self.data_dir / SENDERS)

    @property
    def _facts_file(self) -> Path:
        return self.path / FACTS


def _make_private(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConfigError(f"{directory} is not private to this user; remove it and start again")


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another start has cleared it
        return math.inf


def _facts_in(path: Path) -> Facts | None:
    """What the system of a run directory has told; None if it has told nothing, or does not run any more."""
    try:
        facts = Facts(**json.loads((path / FACTS).read_text()))
        os.kill(facts.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return facts
