"""A place for sockets, and proxies in processes of their own that can be killed and stopped."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.core.bus_address import BusAddress

FORWARD = """
import signal, sys
from local.core.bus_address import BusAddress
from local.bus.proxy import Proxy
proxy = Proxy(BusAddress(*sys.argv[1:]))
print("bound", flush=True)
signal.pause()
"""


@dataclass
class ProxyProcess:
    """The proxy as the system runs it: nothing else in its process."""

    address: BusAddress
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when it is bound."""
        command = [sys.executable, "-c", FORWARD, self.address.publish_to, self.address.subscribe_to]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "bound\n"

    def kill(self) -> None:
        """`kill -9`; returns when it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture
def run_dir() -> Iterator[Path]:
    """A directory whose path is short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="bus-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def ipc(run_dir: Path) -> BusAddress:
    """A private bus address."""
    return BusAddress(f"ipc://{run_dir}/pub", f"ipc://{run_dir}/sub")


@pytest.fixture
def proxy_process(ipc: BusAddress) -> Iterator[ProxyProcess]:
    """A running proxy."""
    proxy = ProxyProcess(ipc)
    proxy.start()
    yield proxy
    proxy.kill()


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Finds TCP ports on the loopback that nobody uses."""

    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            return port

    return find
