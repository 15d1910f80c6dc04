"""The ZeroMQ transport: an XPUB to send, a SUB to listen, both read on their file descriptors.

Facts behind the settings (libzmq 4.3.5): a PUB loses what it sends before the subscription arrives and never says so,
an XPUB hears of it; XPUB_NODROP turns a full queue into EAGAIN instead of silence, though POLLOUT stays set; a SUB with
the default marks keeps only 1,000 subscriptions; the file descriptor is edge-triggered, so after any send or receive a
look at the socket is due, because that call may have swallowed the edge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import zmq

from local.bus.address import BusAddress
from local.bus.transport import Transport
from local.errors import BadBusAddress, BusClosed
from local.protocol.envelope import MAX_FRAME

DRAIN_AT_A_TURN = 128
SEND_HIGH_WATER_MARK = 10_000
LINGER_MS = 1_500
# For connections to other machines: the end of a process on this one is seen at once.
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 5_000, 12_000
ASK_AGAIN_SECONDS = 0.005
LOOK_AGAIN_SECONDS = 0.002
CURVE_OVERHEAD = 64  # libzmq measures an encrypted frame with its nonce and seal, 33 bytes


class ZeroMQTransport(Transport):
    """One participant's two sockets to the proxy. Made and used inside one running event loop."""

    def __init__(self, address: BusAddress) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._context = zmq.Context()
        self._pub = self._socket(zmq.XPUB)
        self._pub.setsockopt(zmq.XPUB_NODROP, 1)
        self._pub.setsockopt(zmq.IMMEDIATE, 1)  # a lost connection then takes its subscription along, and we hear of it
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
        finally:  # whatever a receiver raises, the edge that told of the other frames will not come again
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
