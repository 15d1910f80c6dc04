"""The sockets that the system listens on, bound before any process starts, so that a fault shows at once."""

from __future__ import annotations

import errno
import ipaddress
import socket

from local.bus.address import BusAddress
from local.errors import ConfigError

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
    """Raises `ConfigError` for an address that others can reach while everybody would be let in."""
    if token is None and not ipaddress.ip_address(address).is_loopback:
        raise ConfigError(
            f"api_host {address} can be reached by others: set the environment variable LOCAL2_API_TOKEN to a secret"
            " that clients send as 'Authorization: Bearer …', or listen on 127.0.0.1"
        )


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
