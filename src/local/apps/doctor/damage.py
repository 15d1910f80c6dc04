"""Checks for damaged stores that were moved aside."""

from __future__ import annotations

import json
from pathlib import Path

from local.apps.doctor.finding import Finding, ok, warn

DELETE = "look into it and then delete it: nothing reads it any more, and what you delete elsewhere stays in it"


def check_damage(data_dir: Path) -> Finding | list[Finding]:
    """One warning for each folder into which a start has moved a damaged store."""
    folders = sorted(data_dir.glob("*.damaged-*"))
    if not folders:
        return ok("damage", "no store was ever found damaged")
    return [warn("damage", f"{folder}: {_what_happened(folder)}", DELETE) for folder in folders]


def _what_happened(folder: Path) -> str:
    """What the report beside the damaged file says, if there is one that can be read."""
    try:
        report = json.loads((folder / "report.json").read_text())
        ranges = [f"{first} to {last}" for first, last in report["in_doubt"]]
        return f"{report['reason']}; {'in doubt: ' + ', '.join(ranges) if ranges else 'no message was lost'}"
    except (OSError, ValueError, TypeError, LookupError):
        return "a damaged store, without a report that could be read"
