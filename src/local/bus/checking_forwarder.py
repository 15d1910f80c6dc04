"""The proxy's loop where connections have keys: nothing is passed on that the holder of a key may not say."""

from __future__ import annotations

import logging
from collections import Counter

import zmq

from local.bus.reject_log import RejectLog
from local.bus.sender_guard import SenderGuard
from local.errors import MalformedFrame
from local.protocol.envelope import decode

log = logging.getLogger(__name__)

PROXY = "proxy"  # as which it signs samples of what it has refused
FRAMES_AT_A_TURN = 256
MAX_FAULTS = 256  # that are told of once each
FIGURE_BYTES = 8


class CheckingForwarder:
    """Does in Python what `zmq_proxy_steerable` does in C, and answers on its control socket as that does.

    The authenticator has put the name that belongs to a connection's key on each of its frames; the sender named in the
    envelope has to be that one, and to have declared the subject.
    """

    def __init__(self, guard: SenderGuard, rejects: RejectLog | None) -> None:
        self._guard, self._rejects = guard, rejects
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
        """Take what subscribers say to the socket, which has already noted it: we hear everything as it is."""
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
            return f"{name} has spoken in the name of {envelope.sender[:80]}"
        return self._guard.fault(envelope)

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
