"""The ZeroMQ transport: an XPUB to send, a SUB to listen, both read on their file descriptors.

Facts behind the settings (libzmq 4.3.5): a PUB loses what it sends before the subscription arrives and never says so,
an XPUB hears of it; XPUB_NODROP turns a full queue into EAGAIN instead of silence; a SUB with the default marks keeps
only 1,000 subscriptions; the file descriptor is edge-triggered, so after any send or receive a look at the
socket is due, because that call may have swallowed the edge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import zmq

from local.bus.address import BusAddress
from local.errors import BusClosed

DRAIN_AT_A_TURN = 128
SEND_HIGH_WATER_MARK = 10_000
LINGER_MS = 1_500


class ZeroMQTransport:
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
        self._pub_drain_due = False
        self._closed = False
        self._on_frame: Callable[[bytes], None] = lambda frame: None
        self._on_link: Callable[[bool], None] = lambda up: None

    @property
    def address(self) -> str:
        return self._address.publish_to

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None:
        self._on_frame, self._on_link = on_frame, on_link
        self._pub.connect(self._address.publish_to)
        self._sub.connect(self._address.subscribe_to)
        self._loop.add_reader(self._pub.FD, self._drain_pub)
        self._loop.add_reader(self._sub.FD, self._drain_sub)
        self._loop.call_soon(self._drain_pub)
        self._loop.call_soon(self._drain_sub)

    def subscribe(self, prefix: bytes) -> None:
        self._sub.setsockopt(zmq.SUBSCRIBE, prefix)
        self._loop.call_soon(self._drain_sub)

    def unsubscribe(self, prefix: bytes) -> None:
        self._sub.setsockopt(zmq.UNSUBSCRIBE, prefix)
        self._loop.call_soon(self._drain_sub)

    def send(self, frame: bytes) -> bool:
        try:
            self._pub.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return False
        if not self._pub_drain_due:
            self._pub_drain_due = True
            self._loop.call_soon(self._drain_pub)
        return True

    async def writable(self) -> None:
        if self._pub_events() & zmq.POLLOUT:
            return
        waiter = self._loop.create_future()
        self._writers.add(waiter)
        try:
            await waiter
        finally:
            self._writers.discard(waiter)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._pub.FD)
        self._loop.remove_reader(self._sub.FD)
        for waiter in self._writers:
            waiter.set_exception(BusClosed("the bus was closed while a message waited for room"))
        self._sub.close(0)
        self._pub.close()
        await asyncio.to_thread(self._context.term)  # waits for the linger time at most

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, LINGER_MS)
        socket.setsockopt(zmq.RECONNECT_IVL, 10)
        socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3000)
        socket.setsockopt(zmq.MAXMSGSIZE, 1024 * 1024)
        keys = self._address.keys
        if keys is not None:
            socket.curve_serverkey = keys.server_public.encode()
            socket.curve_publickey = keys.client_public.encode()
            socket.curve_secretkey = keys.client_secret.encode()
        return socket

    def _pub_events(self) -> int:
        events = self._pub.getsockopt(zmq.EVENTS)
        assert isinstance(events, int)
        return events

    def _drain_sub(self) -> None:
        if self._closed:
            return
        receive, deliver = self._sub.recv, self._on_frame
        try:
            for _ in range(DRAIN_AT_A_TURN):
                deliver(receive(zmq.NOBLOCK))
        except zmq.Again:
            return
        self._loop.call_soon(self._drain_sub)

    def _drain_pub(self) -> None:
        """Read the proxy's subscription notices and wake those that wait for room."""
        self._pub_drain_due = False
        if self._closed:
            return
        events = self._pub_events()
        while events & zmq.POLLIN:
            notice = self._pub.recv(zmq.NOBLOCK)
            if notice in (b"\0", b"\1"):
                self._on_link(notice == b"\1")
            events = self._pub_events()
        if events & zmq.POLLOUT:
            for waiter in self._writers:
                if not waiter.done():
                    waiter.set_result(None)
