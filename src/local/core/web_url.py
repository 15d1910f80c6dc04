"""One web address, parsed strictly: every reader of a `WebUrl` sees the same host, in its one canonical form."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote

import idna

from local.core.errors import ConfigError, FetchRefused, ToolError

IPAddress = IPv4Address | IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_LENGTH = 8192
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(?:#.*)?")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@%]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class WebUrl:
    """An http or https address without fragment. `host` is lower-case ASCII without brackets or trailing dot."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, percent-encoded; begins with a slash."""

    @property
    def address(self) -> IPAddress | None:
        """The host as an IP address, or None if it is a name."""
        if ":" in self.host:
            return IPv6Address(self.host)
        return IPv4Address(self.host) if _is_numeric(self.host) else None

    @property
    def netloc(self) -> str:
        """Host and, unless it is the scheme's own, port: the value of the Host header."""
        return netloc(self.host, None if self.port == DEFAULT_PORTS[self.scheme] else self.port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.target}"


def netloc(host: str, port: int | None) -> str:
    """Write a canonical host, IPv6 in brackets, with its port if there is one."""
    written = f"[{host}]" if ":" in host else host
    return written if port is None else f"{written}:{port}"


def parse_web_url(text: str) -> WebUrl:
    """Parse a complete address; `FetchRefused` for whatever two parsers could read in two ways."""
    try:
        return _parse(text)
    except ValueError as error:
        raise FetchRefused(text, str(error)) from None


def parse_authority(text: str) -> tuple[str, int | None]:
    """Split `host` or `host:port` into the canonical host and the port, if given; `ValueError` says what is wrong."""
    if "@" in text:
        raise ValueError("a user name or password in an address is not allowed")
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise ValueError("its host is not written as a plain host name or address")
    host, port = match[1], match[2]
    if port is not None and not 1 <= int(port) <= 65535:
        raise ValueError(f"there is no port {port}")
    return _canonical_host(host), int(port) if port else None


def _parse(text: str) -> WebUrl:
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"it is longer than {_MAX_LENGTH} characters")
    if any(_is_forbidden(character) for character in text):
        raise ValueError("it contains white space, a control character or a backslash")
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("it is not a complete address; write it as https://host/path")
    scheme = match[1].lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError("only http and https can be fetched")
    host, port = parse_authority(match[2])
    target = match[3] if match[3].startswith("/") else "/" + match[3]
    return WebUrl(scheme, host, port or DEFAULT_PORTS[scheme], quote(target, safe=string.punctuation))


def _is_forbidden(character: str) -> bool:
    return character == "\\" or character.isspace() or unicodedata.category(character) in ("Cc", "Cs")


def _canonical_host(host: str) -> str:
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except AddressValueError:
            raise ValueError("the brackets do not contain an IPv6 address") from None
    try:
        mapped = idna.uts46_remap(host, std3_rules=False, transitional=False).removesuffix(".")
        name = ".".join(_canonical_label(label) for label in mapped.split("."))
    except idna.IDNAError as error:
        raise ValueError(f"its host is not a valid name ({error})") from None
    if len(name) > 253:
        raise ValueError("its host name is longer than 253 characters")
    return _plain_ipv4(name) if _is_numeric(name) else name


def _canonical_label(label: str) -> str:
    """ASCII labels by our own rule: idna refuses the `_` and the `r3---sn` that real host names have."""
    if not label.isascii() or label.startswith("xn--"):
        label = idna.alabel(label).decode("ascii")
    if not _LABEL.fullmatch(label):
        raise ValueError("its host is not a valid host name")
    return label


def _is_numeric(name: str) -> bool:
    """Whether the last label is numeric, as WHATWG defines it: such a host is an IPv4 address in some notation, never
    a name.
    """
    return _NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]) is not None


def _plain_ipv4(name: str) -> str:
    try:
        return str(IPv4Address(name))
    except AddressValueError:
        raise ValueError("its host is a number; write an IPv4 address as four decimal numbers") from None


# The decision what may be fetched, without I/O, at both stages: the written address and the resolved one.

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
# First match wins. Addresses in no block and outside 2000::/3 are reserved all the same.
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
    """Return the special purpose of an address, or None for an ordinary address of the public internet.

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
# Public names that point at private addresses. The resolve stage would catch them; this avoids even the look-up.
_REBINDING_SUFFIXES = (
    *("nip.io", "sslip.io", "xip.io", "traefik.me", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "fuf.me"),
    *("localho.st", "rbndr.us", "1u.ms", "burpcollaborator.net"),
)


class AddressGuard:
    """A check that admits only public web addresses and the exceptions in `allow_hosts` ("host" or "host:port")."""

    def __init__(self, allow_hosts: Iterable[str] = ()) -> None:
        """Raise `ConfigError` for an entry that is not a host."""
        self._allowed = frozenset(_allowed_host(entry) for entry in allow_hosts)

    def check_url(self, text: str) -> WebUrl:
        """Parse and judge a written address; `FetchRefused` has the reason."""
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
        """Judge one address that the host of a checked URL resolved to; `FetchRefused` has the reason."""
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


# The kind of a response's document: by its declaration, and by inspection where that is wrong.

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

_APPLICATION_TEXT = re.compile(r"application/(?:[\w.-]+\+)?(?:json|xml)|application/x-ndjson")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_SIGNATURES = {
    b"%PDF-": "application/pdf",
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
}
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class MediaType:
    """A content type in lower case without parameters, and the charset it declares, if any."""

    name: str
    charset: str | None = None

    @property
    def is_html(self) -> bool:
        """Whether the text is markup for a browser."""
        return self.name in HTML_TYPES


def readable_type(header: str) -> MediaType:
    """The type a Content-Type header names (none: HTML); `ToolError` of kind unsupported_type if it is not text."""
    name = header.partition(";")[0].strip().lower() or "text/html"
    if not name.startswith("text/") and name not in HTML_TYPES and not _APPLICATION_TEXT.fullmatch(name):
        raise _unsupported(name[:80])
    charset = _CHARSET.search(header)
    return MediaType(name, charset[1] if charset else None)


def check_is_text(body: bytes, charset: str | None) -> None:
    """`ToolError` of kind unsupported_type if a body that claims to be text is a binary format."""
    for signature, name in _SIGNATURES.items():
        if body.startswith(signature):
            raise _unsupported(name)
    wide = body.startswith(_UTF_16_MARKS) or (charset or "").lower().startswith(("utf-16", "utf-32"))
    if b"\0" in body[:1024] and not wide:
        raise _unsupported("binary data")


def _unsupported(name: str) -> ToolError:
    return ToolError(
        f"the address leads to {name}, which cannot be read; only HTML, plain text, Markdown, JSON and XML can",
        kind="unsupported_type",
    )
