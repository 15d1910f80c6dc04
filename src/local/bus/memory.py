"""The in-process transport: a hub that passes frames between participants of one event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from weakref import WeakValueDictionary

from local.bus.address import BusAddress
from local.bus.transport import Transport


class MemoryHub:
    """What the proxy is for ZeroMQ. `down()` and `up()` are its death and restart: frames sent meanwhile are lost."""

    def __init__(self) -> None:
        self.transports: list[MemoryTransport] = []
        self.running = True

    def transport(self) -> MemoryTransport:
        """A new end for one participant."""
        return MemoryTransport(self)

    def forward(self, frame: bytes) -> None:
        """Pass a frame to every transport that subscribed to a prefix of it, in the order of sending."""
        if not self.running:
            return
        loop = asyncio.get_running_loop()
        for transport in self.transports:
            if transport.wants(frame):
                loop.call_soon(transport.deliver, frame)

    def down(self) -> None:
        """Stop forwarding and tell everybody, as a broken connection would."""
        self.running = False
        for transport in self.transports:
            transport.on_link(False)

    def up(self) -> None:
        """Forward again."""
        self.running = True
        for transport in self.transports:
            transport.on_link(True)


class MemoryTransport(Transport):
    """One participant's end of a `MemoryHub`."""

    address = "memory:"

    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub
        self._prefixes: Counter[bytes] = Counter()
        self.on_link: Callable[[bool], None] = lambda up: None
        self._on_frame: Callable[[bytes], None] = lambda frame: None

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None:
        self._on_frame, self.on_link = on_frame, on_link
        self._hub.transports.append(self)
        if self._hub.running:
            asyncio.get_running_loop().call_soon(on_link, True)

    def subscribe(self, prefix: bytes) -> None:
        self._prefixes[prefix] += 1

    def unsubscribe(self, prefix: bytes) -> None:
        self._prefixes[prefix] -= 1
        self._prefixes += Counter()  # drops what is at zero

    def wants(self, frame: bytes) -> bool:
        """Whether a subscription matches."""
        return frame.startswith(tuple(self._prefixes))

    def deliver(self, frame: bytes) -> None:
        """Called by the hub, one loop iteration after the frame was sent."""
        self._on_frame(frame)

    def send(self, frame: bytes) -> bool:
        self._hub.forward(frame)
        return True

    async def writable(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        if self in self._hub.transports:
            self._hub.transports.remove(self)
        self._on_frame = lambda frame: None


_hubs: WeakValueDictionary[str, MemoryHub] = WeakValueDictionary()


def transport_at(address: BusAddress) -> MemoryTransport:
    """A new end of the hub of that name ("memory:name") in this process, which lives as long as somebody's end does."""
    hub = _hubs.get(address.publish_to) or MemoryHub()
    _hubs[address.publish_to] = hub
    return hub.transport()
