"""What was refused, sampled into one bounded file so that a person can look at it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FILE_NAME = "rejected.jsonl"  # in the data directory
MAX_BYTES = 1024 * 1024
SAMPLE_BYTES = 200
FREE_SAMPLES = 20


class RejectLog:
    """Appends samples of refused frames to a file of JSON lines: the first twenty, then one a second, until the file
    holds 1 MiB. Counting goes on regardless; a disk that cannot be written costs the sample, nothing else."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._next_sample = 0.0
        self.count = 0

    def add(self, participant: str, reason: str, data: bytes) -> None:
        """Count one refused frame and perhaps keep its first bytes."""
        self.count += 1
        now = self._clock()
        if self.count > FREE_SAMPLES and now < self._next_sample:
            return
        self._next_sample = now + 1.0
        line = {
            "at": time.time(),
            "participant": participant,
            "reason": reason[:300],
            "size": len(data),
            "head": data[:SAMPLE_BYTES].decode("latin-1"),
        }
        with suppress(OSError):
            if not self._path.exists() or self._path.stat().st_size < MAX_BYTES:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")

    def clear(self) -> None:
        """Remove the file, for all who write to it."""
        self._path.unlink(missing_ok=True)
