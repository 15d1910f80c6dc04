"""A name server, which records leaks by looked-up names."""

from __future__ import annotations

import socket
import threading
from typing import Self


class NameServer:
    """Records the names that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._hear, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.sendto(b"", ("127.0.0.1", self.port))

    def _hear(self) -> None:
        with self._socket:
            while data := self._socket.recv(65536):
                self.asked.append(data.decode("utf-8", "replace"))
