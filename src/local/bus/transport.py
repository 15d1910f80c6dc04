"""What moves frames: the seam between the bus and ZeroMQ, an in-process hub, or whatever comes later."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Protocol

from local.bus.address import BusAddress
from local.errors import BadBusAddress

# By the scheme of an address, what makes one participant's end from it: "package.module:name".
SCHEMES = {
    "ipc": "local.bus.zeromq:ZeroMQTransport",
    "tcp": "local.bus.zeromq:ZeroMQTransport",
    "memory": "local.bus.memory:transport_at",
}


class Transport(Protocol):
    """One participant's end of the wire. Used from one event loop; `open` comes first, `close` last."""

    @property
    def address(self) -> str:
        """The address that the transport connects to, for messages to people."""
        ...

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None:
        """Connect. `on_frame` gets each frame of a subscription; `on_link(True)` says that somebody listens to our
        frames now, `on_link(False)` that nobody does. Neither may raise."""
        ...

    def subscribe(self, prefix: bytes) -> None:
        """Receive every frame that starts with `prefix`. While a connection lasts, prefixes are in place in the order
        in which they were given."""
        ...

    def unsubscribe(self, prefix: bytes) -> None:
        """Undo one `subscribe` of the same prefix."""
        ...

    def send(self, frame: bytes) -> bool:
        """Hand over one frame without waiting. False: no room, nothing was sent, await `writable`."""
        ...

    async def writable(self) -> None:
        """Wait until `send` may find room again."""
        ...

    async def close(self) -> None:
        """Disconnect; what was handed over is given one or two seconds to leave."""
        ...


def open_transport(address: BusAddress) -> Transport:
    """One participant's end of the wire at an address, not yet open. Raises `BadBusAddress` for an unknown scheme."""
    scheme = address.publish_to.partition(":")[0]
    if scheme not in SCHEMES:
        raise BadBusAddress(f"no transport takes {address.publish_to!r}; there are {', '.join(SCHEMES)}")
    module, _, name = SCHEMES[scheme].partition(":")
    transport: Transport = getattr(importlib.import_module(module), name)(address)
    return transport
