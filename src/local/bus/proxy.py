"""The XPUB/XSUB forwarder, which runs in a thread of a dedicated process: libzmq's own loop, in C, or, where each
connection has a key, a loop of ours that checks senders.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from pathlib import Path

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from local.bus.elsewhere import BlobRights
from local.bus.envelope import MAX_FRAME, decode
from local.bus.receiving import FILE_NAME as REJECTED
from local.bus.receiving import RejectLog
from local.bus.security import Declarations, Keyring, SenderGuard
from local.bus.zeromq import CURVE_OVERHEAD, HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
from local.core.bus_address import BusAddress, CurveKeys
from local.core.errors import LocalError, MalformedFrame

# The proxy's loop for connections with keys: a message is not passed on unless the key's holder may publish it.

log = logging.getLogger(__name__)

PROXY = "proxy"  # its name as the sender of samples of refused frames
FRAMES_AT_A_TURN = 256
MAX_FAULTS = 256  # each reported once
FIGURE_BYTES = 8


class CheckingForwarder:
    """A forwarder in Python that checks senders; it answers on its control socket as `zmq_proxy_steerable` does.

    The authenticator puts the name that belongs to a connection's key on each of its frames. The sender in the
    envelope must have this name and must have declared the subject. With `rights`, clients on other machines refer to
    no blobs of others.
    """

    def __init__(self, guard: SenderGuard, rejects: RejectLog | None, rights: BlobRights | None = None) -> None:
        self._guard, self._rejects, self._rights = guard, rejects, rights
        self._figures: Counter[str] = Counter()
        self._faults: set[str] = set()

    def run(self, xsub: zmq.Socket[bytes], xpub: zmq.Socket[bytes], control: zmq.Socket[bytes]) -> None:
        """Forward until `TERMINATE` arrives on the control socket."""
        poller = zmq.Poller()
        for socket in (xsub, xpub, control):
            poller.register(socket, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if control in ready:
                if control.recv() == b"TERMINATE":
                    return
                control.send_multipart(self._statistics())
            if xpub in ready:
                self._drain(xpub)
            if xsub in ready:
                self._forward(xsub, xpub)

    def _drain(self, xpub: zmq.Socket[bytes]) -> None:
        """Discard the subscription messages, which the socket has already processed."""
        try:
            for _ in range(FRAMES_AT_A_TURN):
                xpub.recv(zmq.NOBLOCK)
        except zmq.Again:
            pass

    def _forward(self, xsub: zmq.Socket[bytes], xpub: zmq.Socket[bytes]) -> None:
        try:
            for _ in range(FRAMES_AT_A_TURN):
                frame = xsub.recv(zmq.NOBLOCK, copy=False)
                data = frame.bytes
                self._figures["frames_in"] += 1
                self._figures["bytes_in"] += len(data)
                if frame.more or (fault := self._fault(frame, data)) is not None:
                    self._refuse("a frame of several parts" if frame.more else str(fault), data)
                    continue
                xpub.send(data)
                self._figures["frames_out"] += 1
                self._figures["bytes_out"] += len(data)
        except zmq.Again:
            pass

    def _fault(self, frame: zmq.Frame, data: bytes) -> str | None:
        name = str(frame.get("User-Id"))
        try:
            envelope = decode(data)
        except MalformedFrame as error:
            return f"{name}: {error}"
        if envelope.sender != name:
            return f"{name} has sent a message in the name of {envelope.sender[:80]}"
        fault = self._guard.fault(envelope)
        if fault is None and self._rights is not None:
            try:
                return self._rights.fault(envelope)
            except MalformedFrame as error:
                return f"{name}: {error}"
        return fault

    def _refuse(self, fault: str, data: bytes) -> None:
        self._figures["refused"] += 1
        if fault not in self._faults and len(self._faults) < MAX_FAULTS:
            self._faults.add(fault)
            log.warning("refused: %s", fault)
        if self._rejects is not None:
            self._rejects.add(PROXY, fault, data)

    def _statistics(self) -> list[bytes]:
        figures = self._figures
        sent = figures["frames_out"], figures["bytes_out"]
        row = (figures["frames_in"], figures["bytes_in"], 0, 0, 0, 0, *sent, figures["refused"])
        return [figure.to_bytes(FIGURE_BYTES, "little") for figure in row]


SEND_HIGH_WATER_MARK = 100_000  # frames kept for one slow subscriber; beyond that it, and only it, misses some
CONTROL_MS = 1_000


class ProxyFailed(LocalError):
    """The forwarder could not bind, or its loop has ended or hangs."""

    kind = "proxy_failed"


class Proxy:
    """The forwarder of the bus: it binds both addresses and forwards until closed. `statistics()` is answered by the
    forwarding loop itself, so an answer proves that the loop runs.
    """

    def __init__(self, address: BusAddress, rights: BlobRights | None = None) -> None:
        self._context = zmq.Context()
        self._rights = rights
        self._authenticator: ThreadAuthenticator | None = None
        self._checking: CheckingForwarder | None = None
        try:
            xsub, xpub = self._bound(address)
        except BaseException:
            self._release()
            raise
        self._thread = threading.Thread(target=self._forward, args=(xsub, xpub), name="proxy", daemon=True)
        self._thread.start()

    def statistics(self) -> dict[str, int]:
        """Frames and bytes in and out since the start, and frames refused where they are checked.

        Raises `ProxyFailed` if the loop does not answer within 1 s.
        """
        if not self._thread.is_alive():
            raise ProxyFailed("the forwarding loop has ended")
        while self._control.poll(0):  # an answer to an earlier request proves nothing
            self._control.recv_multipart()
        self._control.send(b"STATISTICS")
        if not self._control.poll(CONTROL_MS):
            raise ProxyFailed("the forwarding loop does not answer")
        figures = [int.from_bytes(part[:FIGURE_BYTES], "little") for part in self._control.recv_multipart()]
        refused = {"refused": figures[8]} if self._checking is not None else {}
        forwarded = {"frames_out": figures[6], "bytes_out": figures[7]}
        return {"frames_in": figures[0], "bytes_in": figures[1], **forwarded, **refused}

    def close(self) -> None:
        """End the loop and unbind."""
        if self._thread.is_alive():
            self._control.send(b"TERMINATE")
            self._thread.join()
        self._release()

    def _bound(self, address: BusAddress) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        keys = None if address.keyring is None else self._require_keys(address.keyring)
        if keys is not None and address.senders is not None:
            rejects = RejectLog(address.senders.parent / REJECTED)
            self._checking = CheckingForwarder(SenderGuard(Declarations(address.senders).read), rejects, self._rights)
        self._control = self._context.socket(zmq.PAIR)
        self._control.bind("inproc://proxy-control")
        xsub = self._socket(zmq.XSUB, keys)
        xsub.setsockopt(zmq.RCVHWM, 0)
        xpub = self._socket(zmq.XPUB, keys)
        xpub.setsockopt(zmq.SNDHWM, SEND_HIGH_WATER_MARK)
        xpub.setsockopt(zmq.RCVHWM, 0)
        xsub.send(b"\1")  # everything, before any client can connect: only the XPUB side filters
        self._bind(xsub, address.publish_to)
        self._bind(xpub, address.subscribe_to)
        return xsub, xpub

    def _release(self) -> None:
        if self._authenticator is not None:
            self._authenticator.stop()
        self._context.destroy(0)

    def _forward(self, xsub: zmq.Socket[bytes], xpub: zmq.Socket[bytes]) -> None:
        with xsub, xpub, self._context.socket(zmq.PAIR) as control:
            control.connect("inproc://proxy-control")
            if self._checking is not None:
                self._checking.run(xsub, xpub, control)
            else:
                zmq.proxy_steerable(xsub, xpub, None, control)  # no capture socket: its send would block

    def _socket(self, kind: int, keys: CurveKeys | None) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME + CURVE_OVERHEAD)
        if keys is not None:
            socket.curve_server = True
            socket.curve_publickey = keys.public.encode()
            socket.curve_secretkey = keys.secret.encode()
        return socket

    def _require_keys(self, folder: Path) -> CurveKeys:
        keyring = Keyring(folder)
        keys = keyring.server()
        self._authenticator = _Authenticator(self._context, keyring)
        self._authenticator.start()
        return keys

    def _bind(self, socket: zmq.Socket[bytes], where: str) -> None:
        try:
            socket.bind(where)
        except zmq.ZMQError as error:
            raise ProxyFailed(f"cannot bind the bus to {where}: {error}") from None
        if where.startswith("ipc://"):
            Path(where.removeprefix("ipc://")).chmod(0o600)


class _Authenticator(ThreadAuthenticator):
    """The authenticator of a tcp bus: it admits every key in the keyring and marks each frame with the key's owner."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keyring: Keyring) -> None:
        super().__init__(context)
        self._keyring = keyring
        self.configure_curve_callback(credentials_provider=self)

    def callback(self, domain: str, key: bytes) -> bool:
        """Called by pyzmq with the key that a client proved to hold."""
        return self._keyring.name_of(key.decode()) is not None

    def curve_user_id(self, client_public_key: bytes) -> str:
        """Return the user id of an admitted client, with its key as on the wire; called by pyzmq."""
        return self._keyring.name_of(z85.encode(client_public_key).decode()) or ""
