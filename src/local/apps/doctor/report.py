"""Findings as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from local.apps.doctor.finding import Finding, Status
from local.apps.terminal import visible

_ORDER = list(Status)


def worst(findings: Sequence[Finding]) -> Status:
    """The worst status of all."""
    return max((finding.status for finding in findings), key=_ORDER.index, default=Status.OK)


def as_text(findings: Sequence[Finding]) -> str:
    """One line for each finding, and one for all."""
    lines = [_line(finding) for finding in findings]
    lines.append(", ".join(f"{sum(finding.status is status for finding in findings)} {status}" for status in Status))
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    """{"status", "findings": [{"name", "status", "text", "fix"}]}, on one line."""
    return json.dumps({"status": worst(findings), "findings": [asdict(finding) for finding in findings]})


def _line(finding: Finding) -> str:
    text = visible(" ".join(finding.text.split()))
    fix = f"; to fix it: {finding.fix}" if finding.fix else ""
    return f"{finding.status:<5} {finding.name:<15} {text}{fix}"
