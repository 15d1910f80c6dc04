"""What a person writes as the address of an OpenAI-compatible server, and as its key."""

from __future__ import annotations

from urllib.parse import urlsplit

from local.errors import ConfigError

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
