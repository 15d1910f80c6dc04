"""The XPUB/XSUB forwarder: libzmq's own loop, in C, in a thread of a process that does nothing else."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator

from local.bus.address import BusAddress, CurveKeys
from local.bus.zeromq import CURVE_OVERHEAD, HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
from local.errors import LocalError
from local.protocol.envelope import MAX_FRAME

SEND_HIGH_WATER_MARK = 100_000  # frames kept for one slow subscriber; beyond that it, and only it, misses some
CONTROL_MS = 1_000
_KEY = re.compile(r"[0-9a-zA-Z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # Z85, ZeroMQ RFC 32


class ProxyFailed(LocalError):
    """The forwarder could not bind, or its loop ended or stands still."""

    kind = "proxy_failed"


class Proxy:
    """Binds both addresses and forwards until closed. `statistics()` is answered by the forwarding loop itself, so an
    answer is a proof that it turns."""

    def __init__(self, address: BusAddress) -> None:
        self._context = zmq.Context()
        self._authenticator: ThreadAuthenticator | None = None
        try:
            xsub, xpub = self._bound(address)
        except BaseException:
            self._release()
            raise
        self._thread = threading.Thread(target=self._forward, args=(xsub, xpub), name="proxy", daemon=True)
        self._thread.start()

    def statistics(self) -> dict[str, int]:
        """Frames and bytes in and out since the start. Raises `ProxyFailed` if the loop does not answer within 1 s."""
        if not self._thread.is_alive():
            raise ProxyFailed("the forwarding loop has ended")
        while self._control.poll(0):  # an answer to an earlier question is no proof
            self._control.recv_multipart()
        self._control.send(b"STATISTICS")
        if not self._control.poll(CONTROL_MS):
            raise ProxyFailed("the forwarding loop does not answer")
        figures = [int.from_bytes(part, "little") for part in self._control.recv_multipart()]
        return {"frames_in": figures[0], "bytes_in": figures[1], "frames_out": figures[6], "bytes_out": figures[7]}

    def close(self) -> None:
        """End the loop and unbind."""
        if self._thread.is_alive():
            self._control.send(b"TERMINATE")
            self._thread.join()
        self._release()

    def _bound(self, address: BusAddress) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        if address.keys is not None:
            self._authenticator = self._require_keys(address.keys)
        self._control = self._context.socket(zmq.PAIR)
        self._control.bind("inproc://proxy-control")
        xsub = self._socket(zmq.XSUB, address)
        xsub.setsockopt(zmq.RCVHWM, 0)
        xpub = self._socket(zmq.XPUB, address)
        xpub.setsockopt(zmq.SNDHWM, SEND_HIGH_WATER_MARK)
        xpub.setsockopt(zmq.RCVHWM, 0)
        xsub.send(b"\1")  # everything, before anybody can connect: only the XPUB side filters
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
            zmq.proxy_steerable(xsub, xpub, None, control)  # no capture socket: its send would block

    def _socket(self, kind: int, address: BusAddress) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME + CURVE_OVERHEAD)
        if address.keys is not None:
            socket.curve_server = True
            socket.curve_publickey = address.keys.server_public.encode()
            socket.curve_secretkey = address.keys.server_secret.encode()
        return socket

    def _require_keys(self, keys: CurveKeys) -> ThreadAuthenticator:
        authenticator = ThreadAuthenticator(self._context)
        authenticator.start()
        client = keys.client_public.encode()
        authenticator.configure_curve_callback(credentials_provider=_OneClient(client))
        return authenticator

    def _bind(self, socket: zmq.Socket[bytes], where: str) -> None:
        try:
            socket.bind(where)
        except zmq.ZMQError as error:
            raise ProxyFailed(f"cannot bind the bus to {where}: {error}") from None
        if where.startswith("ipc://"):
            Path(where.removeprefix("ipc://")).chmod(0o600)


class _OneClient:
    """Lets in whoever holds the one client key."""

    def __init__(self, public_key: bytes) -> None:
        self._public_key = public_key

    def callback(self, domain: str, key: bytes) -> bool:
        """Called by pyzmq with the key that a client proved to hold."""
        return key == self._public_key


def load_or_make_keys(directory: Path) -> CurveKeys:
    """The bus keys of a data directory: one file of mode 0600, made at the first start."""
    path = directory / "bus.keys"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        pairs = [key.decode() for _ in range(2) for key in zmq.curve_keypair()]
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("\n".join(pairs) + "\n")
    keys = path.read_text(errors="replace").split()
    if len(keys) != 4 or not all(_KEY.fullmatch(key) for key in keys):
        raise ProxyFailed(f"{path} does not hold four keys of 40 characters; remove it and start again")
    return CurveKeys(*keys)
