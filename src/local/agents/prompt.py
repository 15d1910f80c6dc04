"""What the model is told before the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from local.models.chat import Json


def compose(system_prompt: str, today: date, history: Sequence[Json]) -> tuple[Json, ...]:
    """The system message, with today's date, and the history. A caller's own system messages come after ours."""
    text = f"{system_prompt.strip()}\n\nToday is {today:%A}, {today.isoformat()}."
    return ({"role": "system", "content": text}, *history)
