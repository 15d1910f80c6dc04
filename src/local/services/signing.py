"""Ed25519 keys in files: the one that signs, for the eyes of its owner alone, and the one that everybody may read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Self

from local.errors import ConfigError
from local.private_file import write_private
from local.services.sqlite_file import PASSING, store_failure

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
    """Signs. Made by `of`, which imports NaCl: 0.1 s that only those spend who need it."""

    def __init__(self, key: nacl.signing.SigningKey) -> None:
        self._key = key
        self.public = bytes(key.verify_key)
        self.key_id = key_id_of(self.public)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The key of a folder, made there if there is none; its public half is written beside it.

        Raises `ConfigError` where it can be neither read nor written, `StoreUnwritable` while that passes.
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
    """The public key of a folder, None if there is none that can be read."""
    try:
        return bytes.fromhex((folder / PUBLIC).read_text(encoding="ascii").strip()) or None
    except (OSError, ValueError):
        return None


def is_signed(statement: bytes, signature: str, public: bytes) -> bool:
    """Whether the holder of the private half has signed that."""
    import nacl.exceptions
    import nacl.signing

    try:
        nacl.signing.VerifyKey(public).verify(statement, bytes.fromhex(signature))
    except (ValueError, TypeError, nacl.exceptions.CryptoError):
        return False
    return True
