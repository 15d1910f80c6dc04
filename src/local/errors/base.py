"""The base of every exception that we raise on purpose."""

from __future__ import annotations


class LocalError(Exception):
    """Base of all our errors. `str()` of it is a sentence for a person; `kind` is the word for a program."""

    kind = "error"


class ConfigError(LocalError):
    """A setting that is missing, unknown or of the wrong kind. Says file, line, key and what was expected."""

    kind = "config"
