"""Whether a tcp bus can be had: asked before the first process starts, so that the answer is one line."""

from __future__ import annotations

import errno
import socket

from local.bus.address import BusAddress
from local.errors import ConfigError


def require_free(bus: BusAddress) -> None:
    """Raises `ConfigError` if somebody else listens where the proxy is to. Sockets of ipc:// are locked elsewhere."""
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
