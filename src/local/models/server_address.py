"""What people write as the address of a model server, and as its key, in one form."""

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
    if "@" in text:  # what stands before it is not repeated: it may be a secret
        raise _invalid(f"…@{text.rpartition('@')[2]}", "only scheme, host, port and path may be given")
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
    if url.query or url.fragment or any(c.isspace() for c in rest):
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


_EXPECTED = "expected something like http://127.0.0.1:8080/v1"


def normalise_base_url(value: str) -> str:
    """`scheme://host[:port]/path` without a final slash; an address without a path gets /v1, where nearly all servers
    have their API. Raises `ConfigError` for what cannot be an address.
    """
    text = value.strip().rstrip("/").removesuffix("/chat/completions")
    if "@" in text or "?" in text or "#" in text or any(c.isspace() for c in text):
        # Not repeated here: what stands before an @ or behind a ? may be a secret.
        raise ConfigError(f"the address of a model server has only a scheme, a host, a port and a path; {_EXPECTED}")
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError as error:
        raise ConfigError(f"{value!r} is no address of a model server: {error}; {_EXPECTED}") from error
    if url.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{value!r} is no http or https address; {_EXPECTED}")
    bracketed = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{bracketed}{f':{port}' if port else ''}{url.path or '/v1'}"


def authorisation(api_key: str) -> dict[str, str]:
    """The header that shows the key, none without one. Raises `ConfigError`, which does not tell the key."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise ConfigError("the API key holds a blank, a line end or a character beyond ASCII; no key has these")
    return {"Authorization": f"Bearer {api_key}"}
