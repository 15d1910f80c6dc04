"""One running child process: what it says on its lifeline, its signals, its end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

from local.runtime.forked_process import ForkedProcess
from local.runtime.lifeline import BEAT, READY, SHOW_WARNINGS, STOP, TERMINATED, TROUBLE

# What multiprocessing reports for a child whose template died before it could pass the status on.
STATUS_LOST = 255
STATUS = re.compile(rb"\d")  # the last sign of one that has shared a process
SIGNAL_NAMES = {number.value: number.name for number in signal.Signals}


class ChildProcess:
    """A started child. `gone` is set when its end of the lifeline closed, which only its death does. `last_words` is
    what it said last of what keeps it from its work; nothing while it works.

    The process sentinel would not do: it also fires, for every child alike, when the template dies. Belongs to the
    event loop that made it.
    """

    def __init__(
        self,
        process: ForkedProcess,
        sock: socket.socket,
        on_ready: Callable[[], None],
        on_beat: Callable[[], None],
        on_terminated: Callable[[], None],
    ) -> None:
        self.pid = process.pid
        self.gone = asyncio.Event()
        self.last_words = ""
        self._half_said = b""
        self._status: int | None = None  # that it has said itself
        self._process, self._sock = process, sock
        self._on_ready, self._on_beat, self._on_terminated = on_ready, on_beat, on_terminated
        sock.setblocking(False)
        asyncio.get_running_loop().add_reader(sock, self._listen)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the child unless it has gone: afterwards its pid may be another's."""
        if not self.gone.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def ask_to_stop(self) -> None:
        """Have the child finish what is in flight and end."""
        self._tell(STOP)

    def show_warnings(self) -> None:
        """Have the child hold no warnings back from the terminal any more."""
        self._tell(SHOW_WARNINGS)

    def _tell(self, word: bytes) -> None:
        with suppress(BlockingIOError, BrokenPipeError):  # it has been told often, or has gone
            if not self.gone.is_set():
                self._sock.send(word)

    def abandon(self) -> None:
        """Kill the child and hear no more of it."""
        self.send_signal(signal.SIGKILL)
        self._hang_up()

    def reap(self) -> int | None:
        """The exit status of a child that is gone, negative for a signal, `STATUS_LOST` if nobody knows it any more;
        None if the template does not say. Blocks."""
        return self._process.reap(self._status)

    def _listen(self) -> None:
        while not self.gone.is_set():
            try:
                said = self._sock.recv(4096)
            except BlockingIOError:
                return
            except ConnectionResetError:  # it has ended before it heard that it is to stop
                said = b""
            if said:
                self._take(self._half_said + said)
            else:
                self._hang_up()

    def _take(self, said: bytes) -> None:
        """Signs of life, with lines of text between them, the last of which may not be whole yet."""
        signs, begin, rest = said.partition(TROUBLE)
        self._heed(signs)
        line, end, others = rest.partition(b"\n")
        if end:
            self.last_words = line.decode(errors="replace")
            self._half_said = b""
            self._take(others)
        else:
            self._half_said = begin + rest

    def _heed(self, signs: bytes) -> None:
        if READY in signs:
            self.last_words = ""
            self._on_ready()
        elif BEAT in signs:
            self._on_beat()
        if TERMINATED in signs:
            self._on_terminated()
        if status := STATUS.search(signs):
            self._status = int(status[0])

    def _hang_up(self) -> None:
        if not self.gone.is_set():
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()
            self.gone.set()


def describe_end(status: int | None) -> str:
    """An exit status as `Template.reap` gives it, in words."""
    if status is None:
        return "exit status unknown"
    if status >= 0:
        return f"exit status {status}"
    return f"killed by {SIGNAL_NAMES.get(-status, f'signal {-status}')}"
