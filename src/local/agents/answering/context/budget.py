"""What the context window is divided into, and how much of it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from local.errors import ContextTooLarge

MASK_AT = 0.60
SUMMARISE_AT = 0.75
RESERVE_SHARE, MAX_RESERVE = 0.20, 4096
ROUND_SHARE = 0.25  # the results of one round of tool calls, as they enter
KEPT_SHARE = 0.25  # the last turns, which stay verbatim beside a summary
SUMMARY_SHARE = 0.15


class Part(StrEnum):
    """What takes room in the window. System, tools, question and reserve are never cut."""

    SYSTEM = "system"
    TOOLS = "tools"
    SUMMARY = "summary"
    HISTORY = "history"
    QUESTION = "question"
    STEPS = "steps"
    RESERVE = "reserve"


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of a window of so many tokens."""

    window: int

    @property
    def reserve(self) -> int:
        """Kept free for the answer."""
        return min(MAX_RESERVE, self.share(RESERVE_SHARE))

    @property
    def room(self) -> int:
        """The most that a prompt may take."""
        return self.window - self.reserve

    @property
    def mask_at(self) -> int:
        """Above it, old tool results are masked."""
        return self.share(MASK_AT)

    @property
    def summarise_at(self) -> int:
        """Above it, a summary is due."""
        return self.share(SUMMARISE_AT)

    def share(self, part: float) -> int:
        """A part of the window, in tokens."""
        return int(self.window * part)


@dataclass(frozen=True, slots=True)
class Gauge:
    """How full the window is. `parts` are estimated tokens; `limit` is the whole window."""

    limit: int
    parts: Mapping[Part, int]

    @property
    def used(self) -> int:
        """Tokens of the prompt; the reserve is not among them."""
        return sum(tokens for part, tokens in self.parts.items() if part is not Part.RESERVE)

    def as_json(self) -> dict[str, int | dict[str, int]]:
        """As the bus and the doors tell it."""
        return {"used": self.used, "limit": self.limit, "parts": {part.value: n for part, n in self.parts.items()}}

    def too_large(self) -> ContextTooLarge:
        """The error for a prompt that cannot be made smaller than this."""
        return ContextTooLarge(self.limit, {part.value: tokens for part, tokens in self.parts.items() if tokens})
