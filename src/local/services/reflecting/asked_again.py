"""What a model is told after a reply that could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
MOST_CHARS = 400  # of such a reply


def asked_again(instructions: str, told: str, unread: Sequence[tuple[str, str]]) -> list[Json]:
    """The whole question: the instructions, what was wrong with the replies so far, and what is told."""
    asked = [{"role": "system", "content": instructions}]
    for reply, reason in unread:
        asked += [
            {"role": "assistant", "content": reply[:MOST_CHARS]},
            {"role": "system", "content": f"That cannot be read: {reason}. Reply with the JSON object alone."},
        ]
    return [*asked, {"role": "user", "content": told}]
