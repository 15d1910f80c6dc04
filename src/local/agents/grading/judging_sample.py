"""Which answers are judged while more come than the judge can read: all of a short line, a sample of a long one."""

from __future__ import annotations

import hashlib

LONG = 24  # answers that wait; up to so many, each is judged
FULL = 56  # from so many on, none; below the number that the journal gives at once, or the line would grow there
REASON = "not judged: {waiting} answers waited for the judge, and of a long line it reads a sample"


def is_in_sample(query_id: str, waiting: int) -> bool:
    """Whether an answer is judged while so many wait, by a lot that its query always draws. The share falls from all,
    at `LONG`, to none at `FULL`."""
    return _lot(query_id) < (FULL - waiting) / (FULL - LONG)


def _lot(query_id: str) -> float:
    """A number from 0 to below 1 for each query."""
    return int.from_bytes(hashlib.blake2b(query_id.encode(errors="replace"), digest_size=4).digest(), "big") / 2**32
