"""Who may talk to the API: decided from a request's method, path and headers, before anything else happens."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from local.apps.api.errors import Refusal

OPEN_PATH = "/health"
UPLOAD_PATH = "/attachments"  # its bodies are files of any type
MEGABYTE = 1024 * 1024
MAX_BODY = MEGABYTE
HTTP_PORT = 80


def hosts_of(address: str, port: int, more: Iterable[str] = ()) -> frozenset[str]:
    """Every `Host` that names this server: loopback names, the address it is bound to, and `more` names, with port."""
    bound = f"[{address}]" if ":" in address else address
    names = {"localhost", "127.0.0.1", "[::1]", bound, *(name.lower() for name in more)}
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == HTTP_PORT else frozenset())


@dataclass(frozen=True, slots=True)
class Policy:
    """What is let in. The list of hosts is what a rebound DNS name does not pass. `max_upload` is in bytes."""

    hosts: frozenset[str]
    token: str | None = None
    max_upload: int = MAX_BODY

    def max_body(self, path: str) -> int:
        """The most bytes that a body may hold."""
        return self.max_upload if path == UPLOAD_PATH else MAX_BODY

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raises `Refusal`. Header names are in lower case."""
        self._check_host(headers.get("host", "").lower())
        self._check_site(headers)
        if self.token is not None and path != OPEN_PATH:
            self._check_token(headers.get("authorization", ""))
        if method != "GET" and path != UPLOAD_PATH and _has_body(headers):
            _check_media_type(headers.get("content-type", ""))

    def _check_host(self, host: str) -> None:
        if host not in self.hosts:
            known = ", ".join(sorted(self.hosts))
            raise Refusal("forbidden", f"Host {host[:200]!r} is not this server; it answers to {known}")

    def _check_site(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in self.hosts}:
            raise Refusal("forbidden", f"pages of {origin[:200]!r} may not talk to this server")
        if headers.get("sec-fetch-site") == "cross-site":
            raise Refusal("forbidden", "pages of other sites may not talk to this server")

    def _check_token(self, authorization: str) -> None:
        assert self.token is not None
        scheme, _, given = authorization.partition(" ")
        # Encoded, because compare_digest takes text only if it is ASCII.
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise Refusal("unauthorized", "this server wants 'Authorization: Bearer …' with its LOCAL2_API_TOKEN")


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _check_media_type(value: str) -> None:
    if value.partition(";")[0].strip().lower() != "application/json":
        raise Refusal("unsupported_media_type", f"Content-Type must be application/json, not {value[:200]!r}")
