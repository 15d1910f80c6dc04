"""The secrets of one data directory: each encrypted by itself, in a file; the key in another, for its owner alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from local.config import Settings
from local.config_secret import NAME, NAMES
from local.errors import ConfigError
from local.folder_lock import locked_folder
from local.private_file import write_private
from local.secrets.secret_mask import LEAST_CHARACTERS, secret_mask

if TYPE_CHECKING:
    import nacl.secret

FOLDER = "secrets"  # in the data directory
STORE, KEY = "store.json", "key"
MOST_CHARACTERS = 64 * 1024
KEY_BYTES = 32


class KeptSecret(Settings):
    """One secret in the store's file: its name and value as a box of NaCl's (XSalsa20, Poly1305), in base64."""

    box: str
    set_at: str = ""


class SecretStoreFile(Settings):
    """`secrets/store.json`: what is kept, by name."""

    secrets: dict[str, KeptSecret] = Field(default_factory=dict)


class SecretStore:
    """Every method looks at the files as they are now. What is got from here, this process tells nobody."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / FOLDER

    def all(self) -> dict[str, KeptSecret]:
        """What is kept, by name, without opening any of it. Raises `ConfigError`."""
        path = self.folder / STORE
        try:
            return SecretStoreFile.model_validate_json(path.read_bytes()).secrets
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise ConfigError(f"{path}: cannot be read: {why}; delete it, and set each secret again") from None

    def get(self, name: str) -> str:
        """The value of a secret. Raises `ConfigError` that says how to set one that is not there."""
        kept = self.all().get(name)
        if kept is None:
            raise ConfigError(f"there is no secret {name}; set it with 'local2 secret set {name}'")
        value = self._opened(name, kept)
        secret_mask.hide(name, value)
        return value

    def set(self, name: str, value: str) -> None:
        """Keep a value in place of whatever was kept by that name. Raises `ConfigError`, which never repeats it."""
        if not NAME.fullmatch(name):
            raise ConfigError(f"{name[:80]!r} is no name of a secret: expected {NAMES}")
        if not LEAST_CHARACTERS <= len(value) <= MOST_CHARACTERS or not value.isprintable():
            expected = f"one line of {LEAST_CHARACTERS} to {MOST_CHARACTERS} characters"
            found = f"{len(value)} characters" + ("" if value.isprintable() else ", some of them for control")
            raise ConfigError(f"the secret {name} is not kept: expected {expected}, found {found}")
        with self._changed() as secrets:
            box = self._box(make=True).encrypt(json.dumps([name, value]).encode())
            at = datetime.now(UTC).isoformat(timespec="seconds")
            secrets[name] = KeptSecret(box=base64.b64encode(box).decode(), set_at=at)

    def remove(self, name: str) -> None:
        """Keep it no longer. Raises `ConfigError`."""
        with self._changed() as secrets:
            if secrets.pop(name, None) is None:
                raise ConfigError(f"there is no secret {name}; there are: {', '.join(secrets) or 'none'}")

    def _opened(self, name: str, kept: KeptSecret) -> str:
        import nacl.exceptions

        try:
            named, value = json.loads(self._box().decrypt(base64.b64decode(kept.box)))
        except (ValueError, TypeError, nacl.exceptions.CryptoError):
            named, value = "", ""
        if named != name:  # a box that was moved under another name is no good either
            text = f"the secret {name} cannot be opened with {self.folder / KEY}"
            raise ConfigError(f"{text}; set it again with 'local2 secret set {name}'")
        return str(value)

    def _box(self, *, make: bool = False) -> nacl.secret.SecretBox:
        import nacl.exceptions
        import nacl.secret
        import nacl.utils

        path = self.folder / KEY
        try:
            if make and not path.exists():
                write_private(path, f"{nacl.utils.random(KEY_BYTES).hex()}\n")
            return nacl.secret.SecretBox(bytes.fromhex(path.read_text(encoding="ascii").strip()))
        except (OSError, ValueError, nacl.exceptions.CryptoError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no key"
            raise ConfigError(
                f"{path}: cannot be read: {why}; delete the folder {self.folder}, and set each secret again"
            ) from None

    @contextmanager
    def _changed(self) -> Iterator[dict[str, KeptSecret]]:
        """What is kept, to be changed by one process at a time, and then written."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self.folder):
                secrets = self.all()
                yield secrets
                file = SecretStoreFile(secrets=dict(sorted(secrets.items())))
                write_private(self.folder / STORE, file.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self.folder / STORE} cannot be written: {error.strerror}") from None
