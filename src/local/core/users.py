"""The users of a system besides its owner: each has their own token, of which only the hash is stored."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import yaml
from pydantic import Field, field_validator

from local.core.config import Settings, load
from local.core.data_dir import new_token
from local.core.errors import ConfigError, LocalError, refused_by_disk
from local.core.files import OWNER, locked_folder, write_private

log = logging.getLogger(__name__)

FILE_NAME = "users.yaml"
INVITED_SECONDS = 7 * 86400.0
NAME = re.compile(r"[A-Za-z0-9._:~-]{1,128}")
HEAD = "# Written by `local2 user`; a token is kept as its SHA-256. What is changed here counts at once.\n"


class UserRefused(LocalError):
    """The error for a user who cannot be added or removed; `kind` is invalid, conflict, removed or not_found."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def fault_of_name(name: str) -> str:
    """Return why a name cannot be a user's; empty if it can."""
    if not NAME.fullmatch(name):
        return f"{name!r} is no name: expected 1 to 128 letters, digits and ._:~-"
    return f"{name!r} is the owner of the system, who has a token already: take another" if name == OWNER else ""


class UserEntry(Settings):
    """One user in `users.yaml`."""

    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    added_at: str = ""
    invited_sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$")  # of the code of an unused invitation
    invited_until: float = 0.0  # seconds since 1970


class UsersConfig(Settings):
    """`users.yaml` in the data directory: users by their names, which are also their user_ids; and the names of removed
    users, whose content is still there."""

    users: dict[str, UserEntry] = Field(default_factory=dict)
    removed: tuple[str, ...] = ()

    @field_validator("users")
    @classmethod
    def _have_names(cls, users: dict[str, UserEntry]) -> dict[str, UserEntry]:
        for name in users:
            if fault := fault_of_name(name):
                raise ValueError(fault)
        return users


class Users:
    """The users of one data directory. Every method reads the file again."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir, self._path = data_dir, data_dir / FILE_NAME
        self._seen: tuple[int, ...] | None = None
        self._names: dict[str, str] = {}  # by the hash of the token
        self._invited: frozenset[str] = frozenset()  # the hashes of invitations

    def all(self) -> dict[str, UserEntry]:
        """Every user by name. Raises `ConfigError`."""
        return self._config().users

    def add(self, name: str, *, again: bool = False) -> str:
        """Add a user; returns the token, which is not stored. The name of a removed user is given only `again`, to the
        same person, because what that user said is still there. Raises `UserRefused`, `ConfigError`, `StoreUnwritable`.
        """
        if fault := fault_of_name(name):
            raise UserRefused("invalid", fault)
        token = f"{new_token()}@{name}"  # the name tells other cells whose it is
        with self._changed() as (users, removed):
            if name in users:
                raise UserRefused("conflict", f"{name} has a token already: remove the user first to give a new one")
            if name in removed and not again:
                raise UserRefused(
                    "removed",
                    f"{name} was removed, and the conversations of {name} are still there: take another name for"
                    " another person, or say that this is the same person again",
                )
            added_at = datetime.now(UTC).isoformat(timespec="seconds")
            users[name] = UserEntry(token_sha256=_hash(token), added_at=added_at)
            removed.discard(name)
        return token

    def invite(self, name: str) -> str:
        """Return a code that signs one browser of a user in, once, within a week; the one before it ends. Raises as
        `add`."""
        code = f"{secrets.token_urlsafe(32)}@{name}"
        with self._changed() as (users, _):
            if name not in users:
                raise UserRefused("not_found", f"there is no user {name}")
            invited = {"invited_sha256": _hash(code), "invited_until": time.time() + INVITED_SECONDS}
            users[name] = users[name].model_copy(update=invited)
        return code

    def is_invitation(self, code: str) -> bool:
        """Whether that is the code of an invitation, which may be too old."""
        self._known()
        return _hash(code) in self._invited

    def use_invitation(self, code: str) -> str | None:
        """Return the user whose invitation has this code, which is used now; None if there is none. Raises as `add`."""
        if not self.is_invitation(code):
            return None
        with self._changed() as (users, _):
            for name, user in users.items():
                if user.invited_sha256 == _hash(code) and user.invited_until > time.time():
                    users[name] = user.model_copy(update={"invited_sha256": "", "invited_until": 0.0})
                    return name
        return None

    def remove(self, name: str) -> None:
        """Revoke a user's token; the user's content stays. Raises `UserRefused`, `ConfigError`, `StoreUnwritable`."""
        with self._changed() as (users, removed):
            if users.pop(name, None) is None:
                raise UserRefused("not_found", f"there is no user {name}")
            removed.add(name)

    def name_of(self, token: str) -> str | None:
        """Return the holder of that token; None for an unknown one, and for all while the file cannot be read."""
        return self._known().get(_hash(token))

    def hash_of(self, name: str) -> str | None:
        """Return the hash of a user's token; None if there is no such user, and for all while the file cannot
        be read.
        """
        return next((known for known, each in self._known().items() if each == name), None)

    def knows(self, name: str) -> bool:
        """Whether there is a user of that name."""
        return name in self._known().values()

    @property
    def are_gone(self) -> bool:
        """Whether the data directory is missing, so that no token can be checked."""
        return not self._data_dir.is_dir()

    def _known(self) -> dict[str, str]:
        seen = self._stamp()
        if seen != self._seen:
            self._seen, self._names = seen, self._read()
        return self._names

    def _config(self) -> UsersConfig:
        return load("users", UsersConfig, [self._data_dir])

    def _read(self) -> dict[str, str]:
        self._invited = frozenset()
        try:
            users = self.all()
            self._invited = frozenset(entry.invited_sha256 for entry in users.values() if entry.invited_sha256)
            return {entry.token_sha256: name for name, entry in users.items()}
        except (ConfigError, OSError) as error:
            log.error("no user but the owner is known: %s", error)
            return {}

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    @contextmanager
    def _changed(self) -> Iterator[tuple[dict[str, UserEntry], set[str]]]:
        """The users and the names of removed ones, to be changed by one process at a time, and then written."""
        try:
            with locked_folder(self._data_dir):
                config = self._config()
                users, removed = dict(config.users), set(config.removed)
                yield users, removed
                self._write(users, removed)
        except OSError as error:
            what = f"{self._data_dir} cannot hold users: {error.strerror}"
            raise refused_by_disk(self._path, error.errno) or ConfigError(what) from None

    def _write(self, users: dict[str, UserEntry], removed: set[str]) -> None:
        entries = {name: entry.model_dump(exclude_defaults=True) for name, entry in sorted(users.items())}
        kept = {"users": entries} | ({"removed": sorted(removed)} if removed else {})
        write_private(self._path, HEAD + yaml.safe_dump(kept))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()  # unlike a password, a token cannot be guessed: no slow hash
