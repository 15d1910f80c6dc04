"""One web address, parsed strictly: every reader of a `WebUrl` sees the same host, in its one canonical form."""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote

import idna

from local.errors import FetchRefused

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
            raise ValueError("what stands in the brackets is not an IPv6 address") from None
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
    """By its last label, as WHATWG has it: such a host is an IPv4 address in some notation, never a name."""
    return _NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]) is not None


def _plain_ipv4(name: str) -> str:
    try:
        return str(IPv4Address(name))
    except AddressValueError:
        raise ValueError("its host is a number; write an IPv4 address as four decimal numbers") from None
