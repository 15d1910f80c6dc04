"""Whether an address lies in the user's own house, or out in the world."""

from __future__ import annotations

import ipaddress
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
_OWN_SUFFIXES = ("localhost", "local", "lan", "home.arpa", "internal")


def is_cloud(address: str) -> bool:
    """Whether what is sent to this address leaves the user's own machines, as far as its text tells; no name is looked
    up. `address` is a URL or host[:port]; a name without a dot, or under `.local`, `.lan` and the like, is at home."""
    host = _host(address)
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return "." in host and not any(host.endswith(f".{suffix}") for suffix in _OWN_SUFFIXES)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return host not in _UNSPECIFIED and not any(ip in network for network in _OWN_NETWORKS)


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
