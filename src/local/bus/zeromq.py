"""The ZeroMQ transport: an XPUB to send, a SUB to receive, both read on their file descriptors.

Facts behind the settings (libzmq 4.3.5): a PUB silently loses messages sent before the subscription arrives, an XPUB
receives the subscription; XPUB_NODROP turns a full queue into EAGAIN instead of silent loss, though POLLOUT stays set;
a SUB with the default marks keeps only 1,000 subscriptions; the file descriptor is edge-triggered, so after any send or
receive the socket has to be checked, because that call may have consumed the edge.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import Counter
from collections.abc import Callable
from typing import Protocol
from weakref import WeakValueDictionary

import zmq

from local.bus.envelope import MAX_FRAME
from local.core.bus_address import BusAddress
from local.core.errors import BadBusAddress, BusClosed

# The transports of frames: the seam between the bus and ZeroMQ, an in-process hub, or others.

# The maker of a participant's transport, by the scheme of an address: "package.module:name".
SCHEMES = {
    "ipc": "local.bus.zeromq:ZeroMQTransport",
    "tcp": "local.bus.zeromq:ZeroMQTransport",
    "memory": "local.bus.zeromq:transport_at",
}


class Transport(Protocol):
    """One participant's connection to the bus. Used from one event loop; `open` comes first, `close` last."""

    @property
    def address(self) -> str:
        """The address that the transport connects to, for messages to people."""
        ...

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None:
        """Connect. `on_frame` receives each frame of a subscription; `on_link(True)` reports that the proxy receives
        our frames, `on_link(False)` that it does not. Neither may raise.
        """
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
        """Disconnect; frames already accepted have one or two seconds to be sent."""
        ...


def open_transport(address: BusAddress) -> Transport:
    """Return one participant's transport to an address, not yet open. Raises `BadBusAddress` for an unknown scheme."""
    scheme = address.publish_to.partition(":")[0]
    if scheme not in SCHEMES:
        raise BadBusAddress(f"no transport supports {address.publish_to!r}; supported are {', '.join(SCHEMES)}")
    module, _, name = SCHEMES[scheme].partition(":")
    transport: Transport = getattr(importlib.import_module(module), name)(address)
    return transport


# The in-process transport: a hub that passes frames between participants of one event loop.


class MemoryHub:
    """The in-process counterpart of the proxy. `down()` and `up()` simulate its death and restart; frames sent in
    between are lost.
    """

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
        """Stop forwarding and notify all ends, as a broken connection would."""
        self.running = False
        for transport in self.transports:
            transport.on_link(False)

    def up(self) -> None:
        """Forward again."""
        self.running = True
        for transport in self.transports:
            transport.on_link(True)


class MemoryTransport(Transport):
    """One participant's connection to a `MemoryHub`."""

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
        self._prefixes += Counter()  # drops entries that are zero

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
    """Return a new end of the hub of that name ("memory:name") in this process. The hub lives as long as it has an
    end.
    """
    hub = _hubs.get(address.publish_to) or MemoryHub()
    _hubs[address.publish_to] = hub
    return hub.transport()


DRAIN_AT_A_TURN = 128
SEND_HIGH_WATER_MARK = 10_000
LINGER_MS = 1_500
# For connections to other machines: the end of a process on this one is seen at once.
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 5_000, 12_000
ASK_AGAIN_SECONDS = 0.005
LOOK_AGAIN_SECONDS = 0.002
CURVE_OVERHEAD = 64  # libzmq measures an encrypted frame with its nonce and seal, 33 bytes


class ZeroMQTransport(Transport):
    """One participant's two ZeroMQ sockets to the proxy. Made and used inside one running event loop."""

    def __init__(self, address: BusAddress) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._context = zmq.Context()
        self._pub = self._socket(zmq.XPUB)
        self._pub.setsockopt(zmq.XPUB_NODROP, 1)
        self._pub.setsockopt(zmq.IMMEDIATE, 1)  # a lost connection then removes its subscription, which we receive
        self._pub.setsockopt(zmq.SNDHWM, SEND_HIGH_WATER_MARK)
        self._sub = self._socket(zmq.SUB)
        self._sub.setsockopt(zmq.RCVHWM, 0)
        self._sub.setsockopt(zmq.SNDHWM, 0)
        self._writers: set[asyncio.Future[None]] = set()
        self._pub_drain_due = self._sub_drain_due = False
        self._closed = False
        self._on_frame: Callable[[bytes], None] = lambda frame: None
        self._on_link: Callable[[bool], None] = lambda up: None

    @property
    def address(self) -> str:
        return self._address.publish_to

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None:
        self._on_frame, self._on_link = on_frame, on_link
        for socket, where in ((self._pub, self._address.publish_to), (self._sub, self._address.subscribe_to)):
            try:
                socket.connect(where)
            except zmq.ZMQError as error:
                self._context.destroy(0)
                raise BadBusAddress(f"cannot connect to the bus at {where}: {error}") from None
        self._loop.add_reader(self._pub.FD, self._pub_readable)
        self._loop.add_reader(self._sub.FD, self._drain_sub)
        self._loop.call_soon(self._drain_pub)
        self._drain_sub_soon()

    def subscribe(self, prefix: bytes) -> None:
        if self._closed:
            raise BusClosed("the bus was closed")
        self._sub.setsockopt(zmq.SUBSCRIBE, prefix)
        self._drain_sub_soon()

    def unsubscribe(self, prefix: bytes) -> None:
        if not self._closed:
            self._sub.setsockopt(zmq.UNSUBSCRIBE, prefix)
            self._drain_sub_soon()

    def send(self, frame: bytes) -> bool:
        if not self._pub_drain_due:  # not at once: it would cost every send a turn of the loop
            self._pub_drain_due = True
            self._loop.call_later(LOOK_AGAIN_SECONDS, self._drain_pub)
        try:
            self._pub.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    async def writable(self) -> None:
        """Room shows as an edge on the file descriptor only; should some other call have swallowed it, time will do."""
        waiter = self._loop.create_future()
        self._writers.add(waiter)
        try:
            async with asyncio.timeout(ASK_AGAIN_SECONDS):
                await waiter
        except TimeoutError:
            return
        finally:
            self._writers.discard(waiter)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._pub.FD)
        self._loop.remove_reader(self._sub.FD)
        for waiter in self._writers:
            if not waiter.done():
                waiter.set_exception(BusClosed("the bus was closed while a message waited for room"))
        self._sub.close(0)
        self._pub.close()
        await asyncio.to_thread(self._context.term)  # waits for the linger time at most

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, LINGER_MS)
        socket.setsockopt(zmq.RECONNECT_IVL, 10)
        socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME + CURVE_OVERHEAD)
        keys = self._address.keys
        if keys is not None:
            socket.curve_serverkey = keys.server_public.encode()
            socket.curve_publickey = keys.public.encode()
            socket.curve_secretkey = keys.secret.encode()
        return socket

    def _events(self, socket: zmq.Socket[bytes]) -> int:
        events = socket.getsockopt(zmq.EVENTS)
        assert isinstance(events, int)
        return events

    def _drain_sub_soon(self) -> None:
        if not self._sub_drain_due:
            self._sub_drain_due = True
            self._loop.call_soon(self._drain_sub)

    def _drain_sub(self) -> None:
        self._sub_drain_due = False
        if self._closed:
            return
        receive, deliver = self._sub.recv, self._on_frame
        more = True
        try:
            deliver(receive(zmq.NOBLOCK))
            if not self._events(self._sub) & zmq.POLLIN:  # a lone frame: asking is cheaper than an exception
                more = False
                return
            for _ in range(DRAIN_AT_A_TURN):
                deliver(receive(zmq.NOBLOCK))
        except zmq.Again:
            more = False
        finally:  # after an exception of a receiver, the edge for the other frames would not come again
            if more:
                self._drain_sub_soon()

    def _pub_readable(self) -> None:
        self._drain_pub()
        for waiter in self._writers:
            if not waiter.done():
                waiter.set_result(None)

    def _drain_pub(self) -> None:
        """Read the proxy's subscription notices."""
        self._pub_drain_due = False
        while not self._closed and self._events(self._pub) & zmq.POLLIN:
            notice = self._pub.recv(zmq.NOBLOCK)
            if notice in (b"\0", b"\1"):
                self._on_link(notice == b"\1")
