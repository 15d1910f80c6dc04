"""For how long a server asks to be left alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Nobody limits by more than a month, so a larger number is a timestamp or a mistake.
LONGEST_SECONDS = 31 * 86_400.0


def pause_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the server may be asked again, or None if it does not say.

    `headers` must look up names without regard to case; `now` is aware. Read are Retry-After (RFC 9110: seconds or a
    date) and, without one, Brave's pair X-RateLimit-Remaining and X-RateLimit-Reset (seconds), a value for each window.
    """
    stated = headers.get("retry-after", "").strip()
    seconds = _seconds(stated)
    if seconds is None:
        seconds = _seconds_until(stated, now)
    if seconds is None:
        seconds = _exhausted_window(headers)
    return seconds if seconds is not None and seconds <= LONGEST_SECONDS else None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:  # what "-0000" is parsed to; RFC 9110 knows GMT alone
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _exhausted_window(headers: Mapping[str, str]) -> float | None:
    remaining = headers.get("x-ratelimit-remaining", "").split(",")
    resets = headers.get("x-ratelimit-reset", "").split(",")
    waits = [_seconds(reset) for left, reset in zip(remaining, resets, strict=False) if left.strip() == "0"]
    return max((wait for wait in waits if wait is not None), default=None)
