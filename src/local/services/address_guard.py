"""What may be fetched: the decision, without I/O, at both stages — the written address and what it resolves to."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from local.errors import ConfigError, FetchRefused
from local.services.special_addresses import special_purpose
from local.services.web_url import WebUrl, netloc, parse_authority, parse_web_url

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
