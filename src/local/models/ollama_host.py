"""The forms that OLLAMA_HOST takes, as one base address."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from local.errors import ConfigError

DEFAULT_PORT = 11434

_DEFAULT_PORTS = {"http": 80, "https": 443}
# A server listens on these; a client has to connect to something.
_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def normalise_host(value: str) -> str:
    """`scheme://host:port[/path]` of any form Ollama takes: "", "host", ":port", "host:port", IPv6, "https://…/path".

    As in Ollama, no scheme means http and port 11434, a scheme without a port means 80 or 443. Unspecified addresses
    (0.0.0.0, ::) become loopback. Raises `ConfigError` for what cannot be an address.
    """
    text = value.strip().strip("\"'").strip().rstrip("/")
    url, port = _split(text, value)
    host = _bracketed(url.hostname or "127.0.0.1")
    return f"{url.scheme}://{host}:{port}{url.path.rstrip('/')}"


def is_loopback(base_url: str) -> bool:
    """Whether the address stays on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _split(text: str, value: str) -> tuple[SplitResult, int]:
    scheme, separator, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if separator else ("http", text)
    if _is_ipv6(rest):
        rest = f"[{rest}]"
    try:
        url = urlsplit(f"{scheme}://{rest}")
        port = url.port
    except ValueError as error:
        raise _invalid(value, str(error)) from error
    if scheme not in _DEFAULT_PORTS:
        raise _invalid(value, f"the scheme {scheme!r} is neither http nor https")
    if url.username is not None or url.query or url.fragment or any(c.isspace() for c in rest):
        raise _invalid(value, "only scheme, host, port and path may be given")
    if port is None:
        port = _DEFAULT_PORTS[scheme] if separator else DEFAULT_PORT
    return url, port


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    host = _UNSPECIFIED.get(host, host)
    return f"[{host}]" if ":" in host else host


def _invalid(value: str, reason: str) -> ConfigError:
    expected = f"http://127.0.0.1:{DEFAULT_PORT}"
    return ConfigError(f"{value!r} is no address of an Ollama server: {reason}; expected something like {expected}")
