"""Where the bus is: two addresses and, for tcp, the keys. Decided once by the composition root, passed to everyone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """Z85 keys of 40 characters. The proxy holds the server's pair; clients share one pair and know the server's
    public key; a client with any other key is refused."""

    server_public: str
    server_secret: str
    client_public: str
    client_secret: str


@dataclass(frozen=True, slots=True)
class BusAddress:
    """The proxy's two ends as ZeroMQ addresses: `publish_to` is where participants send, `subscribe_to` where they
    listen. Without `keys` the connection is neither encrypted nor authenticated."""

    publish_to: str
    subscribe_to: str
    keys: CurveKeys | None = None
