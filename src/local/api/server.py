"""Serves an ASGI application on a socket that another process bound and keeps."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import select
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from local.api.http import RETRY_SECONDS, RequestRefused, error_response
from local.core.bus_address import BusAddress
from local.core.errors import ConfigError, LocalError
from local.core.files import contained_processes, is_held_by, until_next_tick
from local.core.open_files import most_open_files

# The other end of one connection over loopback: the Unix user that holds it, from the kernel.

Address = tuple[str, int]

PROC_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
PROC_READS = 3  # of a table that changes while it is read a row may be missed
ESTABLISHED = 1
_IP = ipaddress.ip_address
# From linux/netlink.h, sock_diag.h and inet_diag.h.
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR, _NO_COOKIE = 4, 20, 1, 2, b"\xff" * 8
_HEAD, _ASKED, _TOLD = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=BB2x48x12xII")


class NotTold(Exception):
    """The error for a kernel that does not report the holder of a socket in this way."""


class SandboxLook:
    """The processes in sandboxes, which all processes of the machine are looked through for, in a thread. Many who ask
    at once share a look that begins after the last of them has asked."""

    def __init__(self) -> None:
        self._under_way: asyncio.Task[set[int]] | None = None
        self._next: asyncio.Task[set[int]] | None = None

    async def seen(self) -> set[int]:
        """The ids of those that there were after this was asked."""
        if self._next is None:
            self._next = asyncio.create_task(self._look(self._under_way), name="look for sandboxes")
        return await asyncio.shield(self._next)

    async def _look(self, before: asyncio.Task[set[int]] | None) -> set[int]:
        if before is not None:
            await asyncio.wait({before})
        self._under_way, self._next = self._next, None
        return await asyncio.to_thread(contained_processes)


class Peer:
    """A client and the address at which it has reached us. `is_own_user` says whether it is the Unix user that runs
    this process, None before `look_up`.
    """

    def __init__(
        self,
        client: tuple[str, int | None] | None,
        server: tuple[str, int | None] | None,
        sandboxes: SandboxLook | None = None,
    ) -> None:
        """Without addresses, and for any that is not loopback, it is not. Connections may share the look at
        `sandboxes`."""
        ends = [_plain((host, port)) for host, port in filter(None, (client, server)) if port and _is_loopback(host)]
        self.is_own_user: bool | None = None if len(ends) == 2 else False
        self._ends, self._sandboxes = ends, sandboxes or SandboxLook()

    async def look_up(self) -> None:
        """Ask the kernel, once. A process in a sandbox of ours does not count, though it has the same Unix user.

        Another Unix user costs one question to the kernel. Only for our own are the processes of the machine looked
        through, in a thread: requests of others are answered meanwhile.
        """
        if self.is_own_user is not None:
            return
        try:
            held = socket_by_netlink(*self._ends)
        except NotTold:
            try:
                held = await asyncio.to_thread(socket_by_proc, *self._ends)
            except NotTold:
                self.is_own_user = await asyncio.to_thread(is_held_by_own_process, *self._ends)
                return
        self.is_own_user = await self._is_outside(held)

    async def _is_outside(self, held: HeldSocket | None) -> bool:
        """Whether a socket is our own user's and, where there are sandboxes, held by a process outside all of them."""
        if held is None or held.uid != os.geteuid():
            return False
        contained = await self._sandboxes.seen()
        return not contained or await asyncio.to_thread(is_held_by, held.inode, but=contained)


class HeldSocket(NamedTuple):
    """A socket held by a process: its user, and its number."""

    uid: int
    inode: int


def socket_by_netlink(client: Address, server: Address) -> HeldSocket | None:
    """Return the client's socket, in 25 µs; None if there is none that is established and held by a process. Raises
    `NotTold` without netlink.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.sendto(_question(client, server), (0, 0))
            reply, (sender, _) = kernel.recvfrom(4096, socket.MSG_DONTWAIT)
    except (OSError, AttributeError):
        raise NotTold from None
    _, kind, *_ = _HEAD.unpack_from(reply)
    if sender != 0 or (kind == _ERROR and not _is_missing(reply)):
        raise NotTold
    if kind == _ERROR:
        return None
    _, state, uid, inode = _TOLD.unpack_from(reply, _HEAD.size)
    return HeldSocket(uid, inode) if state == ESTABLISHED and inode else None


def socket_by_proc(client: Address, server: Address) -> HeldSocket | None:
    """Return the socket that a client holds, from the tables in /proc, which takes milliseconds. Raises `NotTold`
    without them.
    """
    try:
        for _ in range(PROC_READS):
            for table, needle in zip(PROC_TABLES, _needles(client, server), strict=True):
                if needle and (found := _row(table.read_bytes(), needle)):
                    uid, inode = int(found[7]), int(found[9])
                    return HeldSocket(uid, inode) if inode else None
    except (OSError, ValueError, LookupError):
        raise NotTold from None
    return None


def is_held_by_own_process(client: Address, server: Address) -> bool:
    """Without a table of all sockets, as on macOS: whether a process of our own user holds the client's."""
    import psutil

    own = os.geteuid()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().effective == own and (client, server) in _connections(process):
                return True
    return False


def _is_loopback(host: str) -> bool:
    try:
        ip = _IP(host)
    except ValueError:
        return False
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def _plain(address: Address) -> Address:
    """An IPv4 address within an IPv6 one as itself."""
    ip = _IP(address[0])
    return str(getattr(ip, "ipv4_mapped", None) or ip), address[1]


def _question(client: Address, server: Address) -> bytes:
    ends = [_IP(host).packed for host, _ in (client, server)]
    family = socket.AF_INET if len(ends[0]) == 4 else socket.AF_INET6
    ports, hosts = struct.pack("!HH", client[1], server[1]), b"".join(end.ljust(16, b"\0") for end in ends)
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ports + hosts + bytes(4) + _NO_COOKIE
    return _HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _REQUEST, 1, 0) + asked


def _is_missing(reply: bytes) -> bool:
    (code,) = struct.unpack_from("=i", reply, _HEAD.size)
    return bool(-code == errno.ENOENT)


def _needles(client: Address, server: Address) -> Iterator[bytes | None]:
    """Return the beginning of the client's row in each table: its own end, then ours, then the state."""
    ends = [(_IP(host).packed, port) for host, port in (client, server)]
    is_v4 = len(ends[0][0]) == 4
    yield _needle(ends) if is_v4 else None
    yield _needle([(bytes(10) + b"\xff\xff" + host, port) for host, port in ends] if is_v4 else ends)


def _needle(ends: list[tuple[bytes, int]]) -> bytes:
    written = [f"{''.join(_words(host))}:{port:04X}" for host, port in ends]
    return f" {' '.join(written)} {ESTABLISHED:02X} ".encode()


def _words(host: bytes) -> Iterator[str]:
    for start in range(0, len(host), 4):
        yield f"{int.from_bytes(host[start : start + 4], sys.byteorder):08X}"


def _row(table: bytes, needle: bytes) -> list[bytes] | None:
    at = table.find(needle)
    return None if at < 0 else table[table.rfind(b"\n", 0, at) + 1 :].split(maxsplit=10)


def _connections(process: object) -> set[tuple[Address, Address]]:
    import psutil

    assert isinstance(process, psutil.Process)
    return {
        (_plain((each.laddr.ip, each.laddr.port)), _plain((each.raddr.ip, each.raddr.port)))
        for each in process.net_connections(kind="tcp")
        if each.status == psutil.CONN_ESTABLISHED and each.raddr
    }


# How long a request waits already when this process has come to it.

_TCP_INFO, _LAST_RECEIVED = 8 + 12 * 4, struct.Struct("=52xI")  # of linux/tcp.h: milliseconds since data has arrived


def seconds_since_data(sock: socket.socket) -> float:
    """How long ago the last data has arrived on a connection, as the kernel tells; 0 where it does not."""
    with suppress(OSError, AttributeError, struct.error):
        told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO)
        return float(_LAST_RECEIVED.unpack(told)[0]) / 1000
    return 0.0


# One HTTP connection of a client, and how many of them there may be.

log = logging.getLogger(__name__)

HEAD_SECONDS = 10.0  # for the whole head of a request, or for its first byte
NEW_SECONDS = 1.0
CLOSE = (b"connection", b"close")
ASKING = b"/query", b"/v1/chat/completions", b"/v1/responses"  # the paths of questions
OTHER_FILES = 160  # of this process: databases, the bus, attachments, and what is accepted before it is counted


class ConnectionLimit:
    """The most connections that may be open: fewer than the files that this process may have open, of which each
    connection needs `files_each`.
    """

    least = 64  # however few files there may be

    def __init__(self, files_each: int = 1) -> None:
        self.most = max((most_open_files() - OTHER_FILES) // files_each, self.least)
        self._is_told = False

    def has_room(self, connections: Iterable[Any], newcomer: HttpConnection) -> bool:
        """Whether a newcomer may stay; if there are too many, the one that is idle for longest is closed for it."""
        others = [other for other in connections if other is not newcomer and not other.transport.is_closing()]
        if len(others) < self.most:
            return True
        self._warn()
        idle = sorted((other for other in others if other.is_idle), key=lambda other: other.idle_since)
        oldest = next((other for other in idle if not other.has_arrived()), None)
        if oldest is not None:
            oldest.transport.close()
        return oldest is not None

    def _warn(self) -> None:
        if not self._is_told:
            log.warning("%d connections are open, and no more may be: idle ones are closed", self.most)
        self._is_told = True


TooLate = Callable[[float], LocalError | None]


class HttpConnection(H11Protocol):
    """One client's HTTP connection. It answers invalid HTTP in JSON, and closes if no request comes for too long."""

    def __init__(self, limit: ConnectionLimit, sandboxes: SandboxLook, too_late: TooLate, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._limit, self._sandboxes, self._too_late = limit, sandboxes, too_late
        self.idle_since = self.loop.time()
        self.lost = asyncio.Event()
        self._answered: object = None  # the last request that was

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered, or has arrived."""
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    @property
    def _is_about_to_ask(self) -> bool:
        """Whether part of a request has arrived, or the client has just connected: it may have been delayed."""
        is_new = self.cycle is None and self.loop.time() - self.idle_since < NEW_SECONDS
        return is_new or bool(self.conn.trailing_data[0])

    def has_arrived(self) -> bool:
        """Whether input of the client is there that was not read yet, because this process was delayed: it is answered
        before this connection is closed for silence.
        """
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """A client has come."""
        super().connection_made(transport)
        self._waited = partial(seconds_since_data, transport.get_extra_info("socket"))
        peer = Peer(self.client, self.server, self._sandboxes)
        own = {"peer": peer, "waited": self._waited}  # for all that is asked on it
        self.app_state = {**self.app_state, **own}
        if len(self.connections) > self._limit.most and not self._limit.has_room(self.connections, self):
            self.app = _no_room

    def data_received(self, data: bytes) -> None:
        """A part of a request has come. A question that is too late is refused unread: to read it would make those
        behind it late."""
        path = next((path for path in ASKING if data.startswith(b"POST %s " % path)), None)
        begins = path is not None and self.is_idle and not self.conn.trailing_data[0]
        refusal = self._too_late(self._waited()) if begins else None
        if refusal is None:
            super().data_received(data)
        else:
            self._refuse(refusal, (path or b"").decode())

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left, or was closed out."""
        super().connection_lost(exc)
        self.lost.set()

    def look(self, now: float) -> None:
        """To be called every second or so: no request waits for this, so none is slower for it."""
        if not self.is_idle:
            self._answered = None
        elif self._answered is not self.cycle:
            self._answered, self.idle_since = self.cycle, now
        elif now - self.idle_since >= HEAD_SECONDS and not self.transport.is_closing() and not self.has_arrived():
            self._close_idle(
                RequestRefused("too_slow", f"the head of the request did not arrive within {HEAD_SECONDS:g} s")
            )

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without a request for a while, unless one has arrived just now."""
        if not self.transport.is_closing() and not self.has_arrived():
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Close this connection at the server's end, at once or after the answer to a request that has arrived."""
        if not self.is_idle:
            self.cycle.keep_alive = False
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE]
        elif not self._is_about_to_ask and not self.has_arrived():
            super().shutdown()

    def end(self) -> None:
        """End the connection with the server; a pending request is answered."""
        refusal = RequestRefused("stopping", "this server is stopping: ask again")
        if self.is_idle:
            self._close_idle(refusal)
        else:
            self._refuse(refusal)

    def send_400_response(self, msg: str) -> None:
        """Answer input that is not an HTTP request."""
        self._refuse(RequestRefused("malformed", "this is no HTTP request"))

    def _close_idle(self, refusal: RequestRefused) -> None:
        if not self.conn.trailing_data[0]:  # it has sent nothing, so it gets no answer
            self.transport.close()
        else:
            self._refuse(refusal)

    def _refuse(self, refusal: LocalError, path: str = "/") -> None:
        """Close the connection with a reason; without a word if an answer is under way already."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = error_response(self.scope["path"] if self.scope and not self.is_idle else path, refusal)
            head = h11.Response(status_code=answer.status_code, headers=[*answer.raw_headers, CLOSE])
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # later output of the application is dropped
        self.transport.close()


async def _no_room(scope: Scope, receive: Receive, send: Send) -> None:
    refusal = RequestRefused("overloaded", "too many connections are open: close some, or try again later")
    headers = {"connection": "close", "retry-after": RETRY_SECONDS}
    await error_response(scope["path"], refusal, headers)(scope, receive, send)


# The sockets that the system listens on, bound before any process starts, so that a fault shows at once.

BACKLOG = 1024  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises `ConfigError` if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; choose another with --api-port") from None
    listener.listen(BACKLOG)
    return listener


def require_token(address: str, token: str | None) -> None:
    """Raise `ConfigError` for an address that others can reach while there is no token."""
    if token is None and not ipaddress.ip_address(address).is_loopback:
        raise ConfigError(
            f"api_host {address} can be reached by others: set the environment variable LOCAL2_API_TOKEN to a secret"
            " that clients send as 'Authorization: Bearer …', or listen on 127.0.0.1"
        )


def require_free(bus: BusAddress) -> None:
    """Raise `ConfigError` if another program listens on the proxy's addresses. Sockets of ipc:// are locked
    elsewhere.
    """
    for address in (bus.publish_to, bus.subscribe_to):
        if address.startswith("tcp://"):
            host, _, port = address.removeprefix("tcp://").rpartition(":")
            _require_free(address, host.strip("[]"), int(port))


def _require_free(address: str, host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:  # anything else is for ZeroMQ to judge, which knows more kinds of addresses
            if error.errno == errno.EADDRINUSE:
                raise ConfigError(
                    f"the bus cannot listen on {address}: the port is taken; choose others with bus_pub_address and"
                    " bus_sub_address in system.yaml, or leave both out"
                ) from None


TICK_SECONDS = 1.0
STOP_SECONDS = 1.0
ACCEPTED_ROUNDS = 4  # of the loop, until a socket accepted in the first of them is a connection
ACCEPTED_AT_ONCE = 16  # connections, in one round of the loop; a few rounds later they are counted
HEADERS = [("x-content-type-options", "nosniff"), ("cross-origin-resource-policy", "same-origin")]


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to its process, and reports when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()
        self._stopping = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # which renews the Date header
            self._look_at_connections()
            with suppress(TimeoutError):
                async with asyncio.timeout(until_next_tick(asyncio.get_running_loop().time(), TICK_SECONDS)):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and answer what has arrived. Requests that are not answered in time get an error."""
        self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]  # of the answers from now on
        await self._stop_accepting(sockets or [])
        for connection in self._connections():
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(*(connection.lost.wait() for connection in self._connections()))
        for connection in self._connections():
            connection.end()
        if tasks := list(self.server_state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=STOP_SECONDS)

    async def _stop_accepting(self, sockets: list[socket.socket]) -> None:
        """asyncio silently drops accepted sockets that are not yet connections when a server is closed."""
        loop = asyncio.get_running_loop()
        for listener in sockets:
            loop.remove_reader(listener)
        for _ in range(ACCEPTED_ROUNDS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()

    def _look_at_connections(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in self._connections():
            connection.look(now)

    def _connections(self) -> list[HttpConnection]:
        return [each for each in self.server_state.connections if isinstance(each, HttpConnection)]

    def stop(self) -> None:
        """Begin to shut down."""
        self.should_exit = True
        self._stopping.set()


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    before_stop: Callable[[], object],
    too_late: TooLate = lambda _: None,
    files_each: int = 1,
) -> AsyncIterator[None]:
    """Serve a TCP socket while the block lasts. `before_stop` is to end what waits; answers get a second to get away.
    `too_late(waited)` gives the refusal of a question that has waited for so many seconds, if it is to be refused.
    `files_each` is how many files a connection needs.

    Closes its own handle of the socket: clients that connect later wait for the next process that serves it.
    """
    # Accepted sockets inherit it. asyncio sets it only where the protocol number is given, which `create_server` does
    # not do, and without it each answer on a kept connection waits 40 ms for a delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    protocol: Any = partial(HttpConnection, ConnectionLimit(files_each), SandboxLook(), too_late)
    config = uvicorn.Config(
        app,
        http=protocol,
        backlog=ACCEPTED_AT_ONCE,
        ws="none",
        lifespan="off",
        log_config=None,
        # uvicorn logs a stream that is cut at the end as an error with a traceback; the application logs the relevant
        # errors.
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # headers about the client are not trusted
        headers=HEADERS,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listener]), name="http server")
        await server.serving.wait()
        listener.listen(BACKLOG)  # asyncio has shortened the queue to what it accepts at once
        try:
            yield
        finally:
            before_stop()
            server.stop()
