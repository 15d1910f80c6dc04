"""The time zones that jobs are in."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from local.services.schedules.schedule import BadSchedule

LOCAL_TIME = Path("/etc/localtime")
_FOLDER = "zoneinfo"


def time_zone(name: str) -> ZoneInfo:
    """The zone of that name, such as Europe/Berlin. Raises `BadSchedule`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSchedule(f"time_zone: there is no {name[:80]!a}; expected one such as Europe/Berlin or UTC") from None


def zone_of_this_machine() -> str:
    """The zone's name, as the link to it says; UTC where that says nothing."""
    parts = LOCAL_TIME.resolve().parts
    name = "/".join(parts[parts.index(_FOLDER) + 1 :]) if _FOLDER in parts else ""
    try:
        return ZoneInfo(name).key if name else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
