"""How long a model may be silent before its first word, where its server tells no progress. No I/O and no clock."""

from __future__ import annotations

from local.models.chat import Usage

_TIMES = 4.0  # what it took before, as a busy machine is slower
_AFTER_A_TIMEOUT = 2.0
_MOST_SECONDS = 3600.0
_FADES = 0.98  # of the slowest that is remembered, with every call


class FirstTokenLimit:
    """What one model needed in earlier calls: seconds to load, and seconds for each byte of a request that it read.

    A limit that was not enough is doubled for the next call, until one succeeds.
    """

    def __init__(self) -> None:
        self._load = self._per_byte = self._at_least = 0.0

    def seconds(self, size: int) -> float:
        """How long the model may be silent after a request of `size` bytes; 0 while nothing is known."""
        return min(max(_TIMES * (self._load + size * self._per_byte), self._at_least), _MOST_SECONDS)

    def learn(self, size: int, usage: Usage) -> None:
        """A call has succeeded; its server says how long it loaded and read."""
        self._at_least = 0.0
        self._load = max(usage.durations.get("load", 0.0), self._load * _FADES)
        read = usage.durations.get("prompt_eval", 0.0)
        self._per_byte = max(read / size if size else 0.0, self._per_byte * _FADES)

    def in_vain(self, seconds: float) -> None:
        """The model was waited for that long, and gave no sign of life."""
        self._at_least = seconds * _AFTER_A_TIMEOUT
