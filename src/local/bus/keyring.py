"""The keys of a tcp bus: a pair for the proxy and one for each name that takes part."""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote

import zmq

from local.bus.address import BusAddress, CurveKeys
from local.errors import LocalError

SERVER_FILE = "bus.keys"
SUFFIX = ".keys"
SETTLED_NS = 1_000_000_000  # a folder that changed later than this ago may change again and keep its time
_KEY = re.compile(r"[0-9a-zA-Z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # Z85, ZeroMQ RFC 32


class BadKeys(LocalError):
    """A file of keys that is damaged, or that is not there and cannot be made here."""

    kind = "bad_keys"


class Keyring:
    """A folder for its owner alone, with a file of mode 0600 for each pair, made when it is first needed.

    `bus.keys` is the proxy's: its public and its secret key. `<name>.keys` is a participant's or a client's: its own
    public and secret key, and the proxy's public one, so that this file alone is what another machine needs. Whose file
    is removed, and on another machine stays, is let in no more.
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
            raise BadKeys(f"{name!r} is the proxy's own name; take another one")
        if not path.exists():
            self._make(path, *_pair(), self.server().public)
        public, secret, server_public, *_ = _read(path, 3)
        return CurveKeys(public, secret, server_public)

    def name_of(self, public_key: str) -> str | None:
        """Whose a public key is; None for one that nobody here has."""
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


def _pair() -> list[str]:
    return [key.decode() for key in zmq.curve_keypair()]


def _read(path: Path, least: int) -> list[str]:
    keys = path.read_text(errors="replace").split() if path.exists() else []
    if len(keys) < least or not all(_KEY.fullmatch(key) for key in keys):
        number = "two" if least == 2 else "three"
        raise BadKeys(f"{path} does not hold {number} keys of 40 characters; remove it and start again")
    return keys
