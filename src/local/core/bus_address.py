"""The addresses of the bus and its protection. The composition root decides them once and passes them to all
processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """The Z85 keys, of 40 characters each, of one bus client: its own pair, and the public key of the proxy."""

    public: str
    secret: str
    server_public: str


@dataclass(frozen=True, slots=True)
class BusAddress:
    """The ZeroMQ addresses of the bus: participants send to `publish_to` and listen on `subscribe_to`.

    `keyring` is the folder of all keys where connections are encrypted and authenticated, and `keys` are those of the
    client that uses this address. `senders` is the folder of all declarations; without it senders are not checked.
    """

    publish_to: str
    subscribe_to: str
    keys: CurveKeys | None = None
    keyring: Path | None = None
    senders: Path | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the bus is encrypted and belongs to the system of another data directory, as on another machine."""
        return self.keyring is not None and self.senders is None
