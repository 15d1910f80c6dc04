"""The data directory and its lock, and the private run directory by which a running system is found."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import math
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from local.core.bus_address import BusAddress
from local.core.environment import environment
from local.core.errors import AlreadyRunning, ConfigError, LocalError, StoreGone
from local.core.files import write_private

if TYPE_CHECKING:
    from local.core.config import SystemConfig


# One system for each data directory, also if the directory or its lock is removed while it runs.


class DataDirLock:
    """The lock on a data directory. Use as a context manager. The lock file is in the data directory, because the
    temporary folder may be cleaned, or be different for other processes.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir, self._path = data_dir, data_dir / "lock"

    def __enter__(self) -> Self:
        """Raises `AlreadyRunning`, `ConfigError`."""
        self._file = self._taken()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def is_lost(self) -> bool:
        """Whether another system would not find the lock that this one holds."""
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        except OSError:
            return True

    def take_again(self) -> None:
        """Acquire the lock again in the current directory. Raises `StoreGone`, `AlreadyRunning`, `ConfigError`."""
        if not self._data_dir.is_dir():
            raise StoreGone(self._data_dir)
        file = self._taken()
        self._file.close()
        self._file = file

    def _taken(self) -> FileIO:
        try:
            file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise unusable(self._data_dir, error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                file.seek(0)
                raise AlreadyRunning(self._who_runs(file.read().decode(errors="replace"))) from None
        with suppress(OSError):  # on a full disk the lock holds without its holder's name
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        return file

    def _who_runs(self, pid: str) -> str:
        who = f"process {pid}" if pid else "another process that is still starting"
        return f"a system already runs on {self._data_dir} ({who}); stop it, or choose another --data-dir"


def holder(data_dir: Path) -> int | None:
    """Return the process that holds the lock of a data directory, if it lives. The check does not block the lock."""
    try:
        pid = int((data_dir / "lock").read_bytes())
        os.kill(pid, 0)
    except (OSError, ValueError, OverflowError):
        return None
    return pid if pid > 0 else None


def unusable(data_dir: Path, error: OSError) -> LocalError:
    """Return the error for a data directory that cannot be used."""
    what = f"{data_dir} cannot hold the data: {error.strerror}"
    return ConfigError(f"{what}; choose another folder with --data-dir or LOCAL2_DATA_DIR")


# The owner's token: who shows it over HTTP is the owner of the system, wherever they are.

FILE_NAME = "api_token"
TOKEN_PREFIX = "local2-"  # of every token of LoCAL2, so that an outdated one differs from other keys


def new_token() -> str:
    """Return a new random token."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def owner_token(data_dir: Path) -> str | None:
    """Return LOCAL2_API_TOKEN, else the content of `api_token`; None if both are missing or the file belongs to
    another user.
    """
    if given := environment().api_token:
        return given
    try:
        return (data_dir / FILE_NAME).read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def make_owner_token(data_dir: Path) -> str:
    """Return the owner's token; if there is none, make one that only this Unix user can read. Raises `OSError`."""
    path = data_dir / FILE_NAME
    if token := owner_token(data_dir):
        if path.exists():
            path.chmod(0o600)
        return token
    write_private(path, f"{new_token()}\n")
    return owner_token(data_dir) or ""


# A temporary folder that is in use for as long as the process lives that holds it, however that ends.


class HeldFolder:
    """A private folder, made if need be and held until `close` or the end of the process: the lock is on the folder
    itself. Raises `OSError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        while True:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # if folders cannot be locked, no process clears them either
                fcntl.flock(self._handle, fcntl.LOCK_SH)
            if _has_its_name(self._handle, path):
                return
            self.close()  # it was cleared at this moment

    def close(self) -> None:
        """Hold it no longer."""
        os.close(self._handle)


def clear_unheld(path: Path, names: Sequence[str]) -> bool:
    """Remove an unlocked folder of this user with the files that match `names`.

    A folder with other content, of another user, or locked is kept. Returns whether it was removed.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        if os.fstat(handle).st_uid != os.getuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in (file for name in names for file in path.glob(name)):
            file.unlink()
        path.rmdir()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _has_its_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


FACTS = "facts.json"
FILES = ("pub", "sub", FACTS, "facts.part")
YOUNG_SECONDS = 60.0
KEYS, SENDERS, ELSEWHERE = "keys", "senders", "elsewhere"  # folders of the data directory

log = logging.getLogger(__name__)


class NotRunning(LocalError):
    """The error for a data directory on which no system runs."""

    kind = "not_running"


def is_encrypted(publish_to: str, system: SystemConfig) -> bool:
    """Whether a bus at an address accepts only clients with keys."""
    return publish_to.startswith("tcp://") and system.bus_security == "curve"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The information that a running system publishes in its run directory: its process, its model servers, its HTTP
    address.

    `routing` is `Routing` as JSON, `chat_model` the model that answers with a window of `chat_num_ctx` tokens.
    Contains no secret.
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
    """The run directory of the system on `data_dir`: lock, sockets and run information. Its path is short, because the
    path of a socket has at most 107 bytes.
    """

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
                self._info_file.unlink(missing_ok=True)

    def clear_others(self) -> int:
        """Remove the directories of systems that were killed or have never been started; returns how many. Young ones
        stay: their owner may be about to use them.
        """
        made_before = time.time() - YOUNG_SECONDS
        others = [path for path in self.path.parent.iterdir() if path != self.path and _changed_at(path) < made_before]
        return sum(clear_unheld(path, FILES) for path in others if _info_in(path) is None)

    def make_data_dir(self) -> None:
        """Make the data directory unless it is there; it is for this user's eyes alone. Raises `ConfigError`."""
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            mode = self.data_dir.stat().st_mode
            if mode & stat.S_ISVTX:  # such as /tmp, which is not ours to close
                raise ConfigError(f"{self.data_dir} belongs to all users; choose a folder of your own with --data-dir")
            if mode & 0o077:
                log.warning(
                    "%s was readable by other users of this machine; its permissions were restricted", self.data_dir
                )
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
        """Return the address of this system's bus, with the folders of its keys and declarations."""
        publish_to = system.bus_pub_address or f"ipc://{self.path / 'pub'}"
        subscribe_to = system.bus_sub_address or f"ipc://{self.path / 'sub'}"
        return self._address(publish_to, subscribe_to, curve=is_encrypted(publish_to, system))

    def write(self, info: RunInfo) -> bool:
        """Write the information by which others find the system; returns False if the disk is full."""
        part = self.path / "facts.part"
        try:
            part.write_text(json.dumps(asdict(info)))
        except OSError:
            return False
        part.replace(self._info_file)
        return True

    def read(self) -> RunInfo:
        """Return the information of the running system. Raises `NotRunning`, also when the system was killed and left
        it behind.
        """
        info = _info_in(self.path)
        if info is None:
            raise NotRunning(f"no system runs on {self.data_dir}; start one with `local2 run`")
        return info

    def running_bus(self) -> BusAddress:
        """The bus of the running system. Raises `NotRunning`."""
        info = self.read()
        return self._address(info.publish_to, info.subscribe_to, curve=info.curve)

    def named_bus(self, publish_to: str, subscribe_to: str, *, curve: bool) -> BusAddress:
        """Return the bus at these addresses. If it belongs to another system, the declarations are unknown here, and
        its proxy checks the senders.
        """
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
    def _info_file(self) -> Path:
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


def _info_in(path: Path) -> RunInfo | None:
    """Return the information in a run directory; None if there is none, or the system has ended."""
    try:
        info = RunInfo(**json.loads((path / FACTS).read_text()))
        os.kill(info.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return info
