"""The secrets of one data directory: encrypted in one file; the key in another, readable only by its owner."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, Field, SecretStr, ValidationError

from local.core.config import Settings
from local.core.config_file import MARK, NAME, NAMES, name_in
from local.core.errors import ConfigError
from local.core.files import locked_folder, write_private

if TYPE_CHECKING:
    import nacl.secret


# Removes a process's secrets from its output: on the bus, in its log, in the results of its tools.

LEAST_CHARACTERS = 8  # a shorter one could not be distinguished from other words


class SecretMask:
    """A filter that replaces the values of secrets by `[secret:NAME]`: verbatim, and in the forms of nested JSON,
    `repr`, addresses and HTML.

    `names` are the secrets that this process knows; without any the filter does nothing.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._hidden: dict[str, str] = {}  # the name by the value
        # The longest first. One pattern for all would be slower: each is searched for by its beginning.
        self._patterns: list[tuple[re.Pattern[str], str]] = []

    def hide(self, name: str, value: str) -> None:
        """Mask this value from now on, unless it is too short to be distinguished from a word."""
        if len(value) < LEAST_CHARACTERS or value in self._hidden:
            return
        self.names.add(name)
        self._hidden[value] = name
        longest_first = sorted(self._hidden, key=len, reverse=True)
        self._patterns = [(re.compile(_written(each)), f"[secret:{self._hidden[each]}]") for each in longest_first]

    def text(self, text: str) -> str:
        """The text without them."""
        for pattern, placeholder in self._patterns:
            text = pattern.sub(placeholder.replace("\\", r"\\"), text)
        return text

    def payload(self, payload: bytes) -> bytes:
        """A JSON document without them in its strings; its keys stay."""
        text = payload.decode("utf-8", "surrogatepass")
        if not any(pattern.search(text) for pattern, _ in self._patterns):
            return payload
        told = self._without(json.loads(payload))
        return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._without(each) for key, each in value.items()}
        return [self._without(each) for each in value] if isinstance(value, list) else value


def _written(value: str) -> str:
    """Return a pattern for a value in all its forms; any number of consecutive backslashes matches as one."""
    once = re.sub(r"\\+", r"\\", value)
    return _forms(once[0]) + "".join(map(_behind_backslashes, once[1:]))


def _behind_backslashes(character: str) -> str:
    if character == "\\":
        return r"(?:\\|(?i:%5C))++"
    return character if _is_plain(character) else rf"\\*+{_forms(character)}"


def _forms(character: str) -> str:
    """Return a pattern for the encodings of a character in an address, in HTML, and in JSON behind a backslash."""
    if _is_plain(character):
        return character
    forms = [re.escape(character), re.escape(html.escape(character)), f"(?i:{quote(character, safe='')})"]
    if character == " ":
        forms.append(r"\+")
    if not character.isascii():
        units = r"\\+".join(re.findall("u....", json.dumps(character)))
        forms.append(f"(?i:{units})")
    return f"(?:{'|'.join(dict.fromkeys(forms))})"


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


secret_mask = SecretMask()
"""Of this process."""


# A text stream for the output of tools that masks the secrets of this process.


class MaskedStream:
    """A text stream that masks secrets, as far as each is written in one piece."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text without secrets; returns the length of the original."""
        self._stream.write(secret_mask.text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# Settings that name a secret, as `secret:NAME`: which they are, and the settings with the values in them.

S = TypeVar("S", bound=Settings)


def named_secrets(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the places where settings name a secret, such as `providers.box.api_key`, and its name."""
    match value:
        case SecretStr() if (name := name_in(value.get_secret_value())) is not None:
            yield place, name
        case BaseModel():
            yield from named_secrets({key: each for key, each in value}, place)  # noqa: C416 - one may be called keys
        case dict():
            for key, each in value.items():
                yield from named_secrets(each, f"{place}.{key}" if place else str(key))
        case list() | tuple():
            for index, each in enumerate(value):
                yield from named_secrets(each, f"{place}[{index}]")


def with_secrets(settings: S, file: str, secret_of: Callable[[str], str]) -> S:
    """Return the settings with the value of each secret that they name; these values, and those of secret settings,
    are masked.

    `secret_of` returns the value by name. Raises `ConfigError` that names the file and key of a missing secret.
    """
    opened: S = _opened(settings, file, "", secret_of)
    return opened


def _opened(value: Any, file: str, place: str, secret_of: Callable[[str], str]) -> Any:
    match value:
        case SecretStr():
            return _revealed(value, file, place, secret_of)
        case BaseModel():
            fields = {key: _opened(each, file, f"{place}{key}.", secret_of) for key, each in value}
            changed = {key: each for key, each in fields.items() if each != getattr(value, key)}
            return value.model_copy(update=changed) if changed else value
        case dict():
            return {key: _opened(each, file, f"{place}{key}.", secret_of) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_opened(each, file, place, secret_of) for each in value)
    return value


def _revealed(secret: SecretStr, file: str, place: str, secret_of: Callable[[str], str]) -> SecretStr:
    key, name = place.removesuffix("."), name_in(secret.get_secret_value())
    if name is None:
        secret_mask.hide(key, secret.get_secret_value())
        return secret
    try:
        if not NAME.fullmatch(name):
            raise ConfigError(f"expected {MARK}NAME, where the name is {NAMES}")
        return SecretStr(secret_of(name))
    except ConfigError as error:
        raise ConfigError(f"{file}.yaml: {key}: {error}") from None


FOLDER = "secrets"  # in the data directory
STORE, KEY = "store.json", "key"
MOST_CHARACTERS = 64 * 1024
KEY_BYTES = 32


class KeptSecret(Settings):
    """One secret in the store's file: its name and value as a NaCl box (XSalsa20, Poly1305), in base64."""

    box: str
    set_at: str = ""


class SecretStoreFile(Settings):
    """The content of `secrets/store.json`: the stored secrets by name."""

    secrets: dict[str, KeptSecret] = Field(default_factory=dict)


class SecretStore:
    """The secrets of one data directory. Every method reads the files again. A value that was read from here is masked
    in all output of this process.
    """

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / FOLDER

    def all(self) -> dict[str, KeptSecret]:
        """Return the stored secrets by name, without decrypting them. Raises `ConfigError`."""
        path = self.folder / STORE
        try:
            return SecretStoreFile.model_validate_json(path.read_bytes()).secrets
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise ConfigError(f"{path}: cannot be read: {why}; delete it and set each secret again") from None

    def get(self, name: str) -> str:
        """Return the value of a secret. Raises `ConfigError` that says how to set a missing one."""
        kept = self.all().get(name)
        if kept is None:
            raise ConfigError(f"there is no secret {name}; set it with 'local2 secret set {name}'")
        value = self._opened(name, kept)
        secret_mask.hide(name, value)
        return value

    def set(self, name: str, value: str) -> None:
        """Keep a value in place of whatever was kept by that name. Raises `ConfigError`, which never repeats it."""
        if not NAME.fullmatch(name):
            raise ConfigError(f"{name[:80]!r} is not a valid name of a secret: expected {NAMES}")
        if not LEAST_CHARACTERS <= len(value) <= MOST_CHARACTERS or not value.isprintable():
            expected = f"one line of {LEAST_CHARACTERS} to {MOST_CHARACTERS} characters"
            found = f"{len(value)} characters" + ("" if value.isprintable() else ", some of them control characters")
            raise ConfigError(f"the secret {name} was not stored: expected {expected}, found {found}")
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
        if named != name:  # a box that was moved to another name is invalid, too
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
            why = error.strerror if isinstance(error, OSError) else "it is not a key"
            raise ConfigError(
                f"{path}: cannot be read: {why}; delete the folder {self.folder}, and set each secret again"
            ) from None

    @contextmanager
    def _changed(self) -> Iterator[dict[str, KeptSecret]]:
        """Yield the stored secrets for a change by one process at a time; they are written afterwards."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self.folder):
                secrets = self.all()
                yield secrets
                file = SecretStoreFile(secrets=dict(sorted(secrets.items())))
                write_private(self.folder / STORE, file.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self.folder / STORE} cannot be written: {error.strerror}") from None
