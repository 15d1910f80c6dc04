"""Ed25519 keys in files: the signing key, readable by its owner alone, and the public one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from local.bus.messages import ToolRequest, arguments_digest
from local.core.database import PASSING, store_failure
from local.core.errors import ConfigError, ToolError
from local.core.files import write_private

if TYPE_CHECKING:
    import nacl.signing

FOLDER = "grants"  # in the data directory
PRIVATE, PUBLIC = "private.key", "public.key"
KEY_ID_DIGITS = 16
READABLE = 0o644


def key_id_of(public: bytes) -> str:
    """The id by which a public key is known."""
    return hashlib.sha256(public).hexdigest()[:KEY_ID_DIGITS]


class SigningKey:
    """The private key that signs grants. Made by `of`, which imports NaCl: 0.1 s for those who need it."""

    def __init__(self, key: nacl.signing.SigningKey) -> None:
        self._key = key
        self.public = bytes(key.verify_key)
        self.key_id = key_id_of(self.public)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the key of a folder, made there if there is none; its public half is written beside it.

        Raises `ConfigError` if it can be neither read nor written, `StoreUnwritable` while that is temporary.
        """
        import nacl.signing

        private = folder / PRIVATE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not private.exists():
                write_private(private, f"{bytes(nacl.signing.SigningKey.generate()).hex()}\n")
            private.chmod(0o600)
            key = cls(nacl.signing.SigningKey(bytes.fromhex(private.read_text(encoding="ascii").strip())))
            if read_public(folder) != key.public:
                write_private(folder / PUBLIC, f"{key.public.hex()}\n", READABLE)
        except (OSError, ValueError) as error:
            failure = store_failure(private, error) if isinstance(error, OSError) else None
            if isinstance(failure, PASSING):
                raise failure from None
            raise ConfigError(f"{private}: {error}; delete it, and the next start makes a new one") from None
        return key

    def sign(self, statement: bytes) -> str:
        """The signature, in hexadecimal digits."""
        return self._key.sign(statement).signature.hex()


def read_public(folder: Path) -> bytes | None:
    """Return the public key of a folder, None if there is no readable one."""
    try:
        return bytes.fromhex((folder / PUBLIC).read_text(encoding="ascii").strip()) or None
    except (OSError, ValueError):
        return None


def keep_public(folder: Path, public: bytes) -> None:
    """Write the gatekeeper's public key where a tool on another machine finds it. Raises `ConfigError`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(folder / PUBLIC, f"{public.hex()}\n", READABLE)
    except OSError as error:
        raise ConfigError(f"{folder / PUBLIC} cannot be written: {error.strerror}") from None


def is_signed(statement: bytes, signature: str, public: bytes) -> bool:
    """Whether the holder of the private half has signed that."""
    import nacl.exceptions
    import nacl.signing

    try:
        nacl.signing.VerifyKey(public).verify(statement, bytes.fromhex(signature))
    except (ValueError, TypeError, nacl.exceptions.CryptoError):
        return False
    return True


# Lets a tool's process make the calls that were granted, and no others.

NOT_GRANTED = "not_granted"


class GrantGuard:
    """A tool's check of grants: it holds the gatekeeper's public key, read from the data directory when it is first
    needed, and again when a grant names another one. `clock` returns seconds since 1970.
    """

    def __init__(self, data_dir: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = data_dir / FOLDER, clock
        self._public: bytes | None = None

    def require(self, request: ToolRequest) -> None:
        """Raises `ToolError` (not_granted) for a call without a grant for it."""
        if why := self._fault(request):
            raise ToolError(f"{request.tool} was not run: {why}", kind=NOT_GRANTED)

    def _fault(self, request: ToolRequest) -> str:
        grant = request.grant
        if grant is None:
            return "nobody has approved this call"
        if self._public is None or key_id_of(self._public) != grant.key_id:
            self._public = read_public(self._folder)
        if self._public is None or key_id_of(self._public) != grant.key_id:
            return "its grant is signed with a key that is not the gatekeeper's"
        if not is_signed(grant.statement(), grant.signature, self._public):
            return "the signature of its grant is wrong"
        try:
            digest = arguments_digest(request.args)
        except ValueError as error:
            return str(error)
        asked = (request.call_id, request.respondent_id, request.tool, digest)
        if asked != (grant.call_id, grant.respondent_id, grant.tool, grant.args_sha256):
            return "its grant is for another call"
        if self._clock() > grant.expires_at:
            return "its grant has expired"
        return ""
