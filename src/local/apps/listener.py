"""The sockets that the system listens on, bound before any process starts, so that a fault shows at once."""

from __future__ import annotations

import ipaddress
import socket

from local.errors import ConfigError


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
    listener.listen(1024)
    return listener


def require_token(address: str, token: str | None) -> None:
    """Raises `ConfigError` for an address that others can reach while everybody would be let in."""
    if token is None and not ipaddress.ip_address(address).is_loopback:
        raise ConfigError(
            f"api_host {address} can be reached by others: set the environment variable LOCAL2_API_TOKEN to a secret"
            " that clients send as 'Authorization: Bearer …', or listen on 127.0.0.1"
        )
