"""Which IP addresses are not the public internet: the IANA special-purpose registries as one table.

Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries, IPv6 Global Unicast Allocations, RFC 6052 (NAT64),
RFC 5214 (ISATAP). Python's own `ipaddress` flags are not used: in 3.11 they are wrong for several of these ranges.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IPAddress = IPv4Address | IPv6Address

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
