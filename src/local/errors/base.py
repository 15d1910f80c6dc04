"""The base of every exception that we raise on purpose."""

from __future__ import annotations

import re

# Before the host of an address: anything up to an @ there; or a password with what no address has there, such as a
# slash, which is told from a port by not being a number.
_USER_AND_PASSWORD = re.compile(
    r"""(?<=://)(?:[^\s/?\#"'<>]*@|[^\s/?\#@:\["'<>]*:(?!\d{0,5}(?:[/?\#\s"'<>]|$))[^\s@"'<>]*@)"""
)


def without_passwords(text: str) -> str:
    """A text in which addresses have lost user and password: `http://…@host`."""
    return _USER_AND_PASSWORD.sub("…@", text) if "@" in text and "://" in text else text


class LocalError(Exception):
    """Base of all our errors. `str()` of it is a sentence for a person, without passwords in addresses; `kind` is the
    word for a program."""

    kind = "error"

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_passwords(arg) if isinstance(arg, str) else arg for arg in args))


class BadRequest(LocalError):
    """What cannot be done because of what was asked. Nothing is wrong with whoever was asked: who asks is told, and the
    log has no fault of it."""

    kind = "invalid"


class ConfigError(LocalError):
    """A setting that is missing, unknown or of the wrong kind. Says file, line, key and what was expected."""

    kind = "config"
