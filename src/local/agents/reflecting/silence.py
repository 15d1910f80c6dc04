"""For how long nobody has asked anything."""

from __future__ import annotations

import time


class Silence:
    """Begins anew with each question and each answer."""

    def __init__(self) -> None:
        self._broken_at = time.monotonic()

    def broken(self) -> None:
        """Somebody is there, or was until now."""
        self._broken_at = time.monotonic()

    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self._broken_at
