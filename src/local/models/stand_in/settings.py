"""What the stand-in is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StandInSettings:
    """`models` are the names present at start (none named: the whole catalogue); `served_at_once` 0 means no limit.

    `latency_seconds` passes before the first token of each answer, `chunk_delay_seconds` between two chunks of
    `chunk_chars` characters. The last `log_size` requests are kept for /stand_in/log.
    """

    models: tuple[str, ...] = ()
    scripts: tuple[Path, ...] = ()
    latency_seconds: float = 0.0
    chunk_delay_seconds: float = 0.0
    chunk_chars: int = 16
    served_at_once: int = 0
    log_size: int = 200
