"""API keys: there and usable, or an error that names the variable."""

from __future__ import annotations

from local.errors import SearchUnavailable


def usable_key(provider: str, variable: str, key: str | None) -> str:
    """`key`, fit for an HTTP header. Raises SearchUnavailable that says which environment variable to set."""
    key = (key or "").strip()
    if not key:
        raise SearchUnavailable(provider, f"it needs an API key; set the environment variable {variable}")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SearchUnavailable(provider, f"the environment variable {variable} holds characters that no key has")
    return key
