"""Whether an address lies in the user's own house, or out in the world."""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import urlsplit

# Written out, because the flags of Python's ipaddress differ between its versions.
_OWN_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
        "100.64.0.0/10",  # not reachable from outside; where overlay networks such as Tailscale have their addresses
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
_UNSPECIFIED = ("0.0.0.0", "::")
_NUMBER = re.compile(r"\d+|0[xX][0-9a-fA-F]*")
_NOT_HOME = "255.255.255.255"
_OWN_SUFFIXES = ("localhost", "local", "lan", "home.arpa", "internal")


def is_cloud(address: str) -> bool:
    """Whether what is sent to this address leaves the user's own machines, as far as its text tells; no name is looked
    up. `address` is a URL or host[:port]; a name without a dot, or under `.local`, `.lan` and the like, is at home."""
    host = _host(address)
    if not host.isascii():
        return True  # a resolver may read other digits and other dots there than are to be seen
    try:
        ip = ipaddress.ip_address(_plain_number(host) or host)
    except ValueError:
        return "." in host and not any(host.endswith(f".{suffix}") for suffix in _OWN_SUFFIXES)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return str(ip) not in _UNSPECIFIED and not any(ip in network for network in _OWN_NETWORKS)


def _plain_number(host: str) -> str | None:
    """An IPv4 address that is not written as four decimal numbers, as 134744072 or 0x8.010.8, in that form; None for
    what is no number. By the last part, as resolvers have it: a name's is none."""
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return _NOT_HOME  # no address at all, and certainly none in this house


def _host(address: str) -> str:
    rest = address.strip().rpartition("://")[2]
    try:
        return str(ipaddress.ip_address(rest))
    except ValueError:
        pass
    try:
        return (urlsplit(f"//{rest}").hostname or "").rstrip(".")
    except ValueError:
        return ""  # whoever connects to it says what is wrong with it
