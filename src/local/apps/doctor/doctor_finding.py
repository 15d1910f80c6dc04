"""What a check has found, as text or, with all others, as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from local.apps.terminal import visible
from local.errors.base import without_passwords


class FindingStatus(StrEnum):
    """How bad a finding is. `WARN`: the system works, but with less than it was configured for."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The outcome of one check: `text` says what is, `fix` what to do about it."""

    name: str
    status: FindingStatus
    text: str
    fix: str = ""

    def __post_init__(self) -> None:
        """No finding tells a password in an address."""
        for name in ("text", "fix"):
            object.__setattr__(self, name, without_passwords(getattr(self, name)))


def ok(name: str, text: str) -> DoctorFinding:
    """A finding that all is well."""
    return DoctorFinding(name, FindingStatus.OK, text)


def warn(name: str, text: str, fix: str) -> DoctorFinding:
    """A finding that something is missing that the system can do without."""
    return DoctorFinding(name, FindingStatus.WARN, text, fix)


def fail(name: str, text: str, fix: str) -> DoctorFinding:
    """A finding that something does not work."""
    return DoctorFinding(name, FindingStatus.FAIL, text, fix)


def worst(findings: Sequence[DoctorFinding]) -> FindingStatus:
    """The worst status of all findings."""
    return max((finding.status for finding in findings), key=list(FindingStatus).index, default=FindingStatus.OK)


def as_line(finding: DoctorFinding) -> str:
    """A finding as text."""
    text = visible(" ".join(finding.text.split()))
    fix = f"; to fix it: {finding.fix}" if finding.fix else ""
    return f"{finding.status:<5} {finding.name:<15} {text}{fix}"


def as_total(findings: Sequence[DoctorFinding]) -> str:
    """The number of findings of each status, as text."""
    counted = Counter(finding.status for finding in findings)
    return ", ".join(f"{counted[status]} {status}" for status in FindingStatus)


def as_json(findings: Sequence[DoctorFinding]) -> str:
    """{"status", "findings": [{"name", "status", "text", "fix"}]}, on one line."""
    return json.dumps({"status": worst(findings), "findings": [asdict(finding) for finding in findings]})
