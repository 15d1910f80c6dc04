"""Pauses: how long a server asks to be left alone, in each form in which servers say it."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from local.web.search import pause_seconds

NOW = datetime(2026, 5, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30),
        ({"retry-after": "0"}, 0),
        ({"Retry-After": "Sat, 30 May 2026 12:01:30 GMT"}, 90),
        ({"Retry-After": "Sat, 30 May 2026 12:01:30 -0000"}, 90),
        ({"Retry-After": "Sat, 30 May 2026 11:00:00 GMT"}, 0),
        ({"X-RateLimit-Remaining": "0, 14523", "X-RateLimit-Reset": "1, 1419704"}, 1),
        ({"X-RateLimit-Remaining": "0, 0", "X-RateLimit-Reset": "1, 1419704"}, 1419704),
        ({"Retry-After": "5", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"}, 5),
        ({"X-RateLimit-Remaining": "3, 20", "X-RateLimit-Reset": "1, 1419704"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1748606400"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
        ({}, None),
    ],
)
def test_a_pause_is_read_in_every_form_and_nonsense_is_none(headers, seconds):
    assert pause_seconds(httpx.Headers(headers), NOW) == seconds
