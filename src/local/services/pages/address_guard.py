"""What may be fetched: the decision, without I/O, at both stages — the written address and what it resolves to."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address

from local.errors import ConfigError, FetchRefused
from local.services.pages.web_url import IPAddress, WebUrl, netloc, parse_authority, parse_web_url

_V4_BLOCKS = {
    IPv4Network(block): name
    for block, name in {
        "0.0.0.0/8": "this host",
        "10.0.0.0/8": "a private network",
        "100.64.0.0/10": "carrier-grade NAT",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud metadata service",  # Azure's, on an otherwise public address
        "169.254.0.0/16": "link-local, where cloud metadata services live",
        "172.16.0.0/12": "a private network",
        "192.0.0.0/24": "IETF protocol assignments",
        "192.0.2.0/24": "documentation",
        "192.31.196.0/24": "AS112",
        "192.52.193.0/24": "AMT relays",
        "192.88.99.0/24": "6to4 relays",
        "192.168.0.0/16": "a private network",
        "192.175.48.0/24": "AS112",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved or broadcast",
    }.items()
}
# First match wins. What is in no block and outside 2000::/3 is reserved all the same.
_V6_BLOCKS = {
    IPv6Network(block): name
    for block, name in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::/96": "an IPv4-compatible address",
        "::ffff:0:0/96": "an IPv4-mapped address",
        "::ffff:0:0:0/96": "an IPv4-translated address",
        "64:ff9b:1::/48": "local NAT64",
        "100::/64": "discard-only",
        "2001::/32": "Teredo tunnels",
        "2001::/23": "IETF protocol assignments",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4 tunnels",
        "3fff::/20": "documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "a private network",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }.items()
}
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP_TAG = 0x5EFE
_ISATAP_MASK = 0xFDFFFFFF  # the universal/local bit may be either


def special_purpose(address: IPAddress) -> str | None:
    """What an address is reserved for, or None if it is an ordinary address of the public internet.

    Addresses that carry an IPv4 address inside are refused as such, except NAT64's well-known prefix: on an IPv6-only
    network every IPv4 site answers through it, so the address inside decides.
    """
    if isinstance(address, IPv4Address):
        return next((name for block, name in _V4_BLOCKS.items() if address in block), None)
    if address in _NAT64:
        return special_purpose(IPv4Address(int(address) & 0xFFFFFFFF))
    for block, name in _V6_BLOCKS.items():
        if address in block:
            return name
    if address not in _GLOBAL_UNICAST:
        return "reserved"
    if (int(address) >> 32) & _ISATAP_MASK == _ISATAP_TAG:
        return "ISATAP tunnels"
    return None


WEB_PORTS = frozenset({80, 443, 8000, 8008, 8080, 8081, 8443, 8888})

_PRIVATE_SUFFIXES = (
    *("localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "home.arpa", "lan"),
    *("svc", "metadata.goog"),
)
# Public names made to point at private addresses. The resolve stage would catch them; here nobody is even asked.
_REBINDING_SUFFIXES = (
    *("nip.io", "sslip.io", "xip.io", "traefik.me", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "fuf.me"),
    *("localho.st", "rbndr.us", "1u.ms", "burpcollaborator.net"),
)


class AddressGuard:
    """Lets through public web addresses and the exceptions in `allow_hosts` ("host" or "host:port")."""

    def __init__(self, allow_hosts: Iterable[str] = ()) -> None:
        """`ConfigError` for an entry that is no host."""
        self._allowed = frozenset(_allowed_host(entry) for entry in allow_hosts)

    def check_url(self, text: str) -> WebUrl:
        """Parse and judge a written address; `FetchRefused` says why not."""
        url = parse_web_url(text)
        if self._is_exception(url):
            return url
        if url.port not in WEB_PORTS:
            raise FetchRefused(text, f"port {url.port} is not one that web pages are served on")
        if url.address is not None:
            self.check_address(url, url.host)
        elif reason := _name_objection(url.host):
            raise FetchRefused(text, reason)
        return url

    def check_address(self, url: WebUrl, address: str) -> None:
        """Judge one address that the host of a checked URL resolved to; `FetchRefused` says why not."""
        if self._is_exception(url):
            return
        if "%" in address:
            raise FetchRefused(str(url), f"{address} is bound to a network interface of this machine")
        if purpose := special_purpose(ip_address(address)):
            raise FetchRefused(str(url), f"{address} is not on the public internet ({purpose})")

    def _is_exception(self, url: WebUrl) -> bool:
        return not self._allowed.isdisjoint({netloc(url.host, None), netloc(url.host, url.port)})


def _allowed_host(entry: str) -> str:
    try:
        return netloc(*parse_authority(entry))
    except ValueError as error:
        raise ConfigError(f'allow_hosts: {entry!r} is not "host" or "host:port": {error}') from None


def _name_objection(host: str) -> str | None:
    if "." not in host:
        return "a name without a dot is a name of the local network"
    if _ends_with(host, _PRIVATE_SUFFIXES):
        return "it is a name of the local machine or network"
    if _ends_with(host, _REBINDING_SUFFIXES):
        return "names under this domain lead to private addresses"
    return None


def _ends_with(host: str, suffixes: tuple[str, ...]) -> bool:
    return any(host == suffix or host.endswith("." + suffix) for suffix in suffixes)
