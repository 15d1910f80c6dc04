"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How bad it is. `WARN`: the system works, but with less than it was configured for."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check: `text` says what is, `fix` what to do about it."""

    name: str
    status: Status
    text: str
    fix: str = ""


def ok(name: str, text: str) -> Finding:
    """All is well."""
    return Finding(name, Status.OK, text)


def warn(name: str, text: str, fix: str) -> Finding:
    """Something is missing that the system can do without."""
    return Finding(name, Status.WARN, text, fix)


def fail(name: str, text: str, fix: str) -> Finding:
    """Something does not work."""
    return Finding(name, Status.FAIL, text, fix)
