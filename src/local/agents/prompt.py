"""What the model is told before the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from local.models.chat import Json


def compose(system_prompt: str, today: date, history: Sequence[Json]) -> tuple[Json, ...]:
    """The system message, with today's date, and the history. A caller's own system messages come after ours."""
    text = f"{system_prompt.strip()}\n\nToday is {today:%A}, {today.isoformat()}."
    return ({"role": "system", "content": text}, *history)


def has_history(prelude: Sequence[Json]) -> bool:
    """Whether anything but system messages comes before the query."""
    return any(message.get("role") != "system" for message in prelude)


def without_older_half(prelude: Sequence[Json]) -> tuple[Json, ...]:
    """The system messages and the younger half of the exchanges (two messages each)."""
    system = [message for message in prelude if message.get("role") == "system"]
    history = [message for message in prelude if message.get("role") != "system"]
    return (*system, *history[(len(history) + 3) // 4 * 2 :])
