"""Where the bus is: two addresses and how it is protected. Decided once by the composition root, passed to everyone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """Z85 keys of 40 characters: one's own pair, and the public key of the proxy."""

    public: str
    secret: str
    server_public: str


@dataclass(frozen=True, slots=True)
class BusAddress:
    """The proxy's two ends as ZeroMQ addresses: `publish_to` is where participants send, `subscribe_to` where they
    listen.

    `keyring` is the folder of everybody's keys where connections are encrypted and authenticated, and `keys` are those
    of whoever uses this address. `senders` is the folder of what everybody has declared to say; without it nobody
    checks that.
    """

    publish_to: str
    subscribe_to: str
    keys: CurveKeys | None = None
    keyring: Path | None = None
    senders: Path | None = None
