"""What a user has agents do: two of them stamp a card each, and the third has two more stamp two others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

Json = dict[str, Any]
DIRECT, BY_OTHERS = 2, 2  # cards that agents of the first tier stamp, and agents of theirs


class Order(NamedTuple):
    """`text` is like no other's; each card is stamped by one agent, as its task. `part` is the task of the agent that
    has others."""

    query_id: str
    session_id: str

    @property
    def text(self) -> str:
        return f"Have agents deal with order {self.query_id}."

    @property
    def part(self) -> str:
        return f"Have two agents see to a part of {self.query_id}."

    @property
    def cards(self) -> list[str]:
        return [f"{self.query_id}-{number}" for number in range(DIRECT + BY_OTHERS)]

    @property
    def tasks(self) -> list[str]:
        """All tasks that come of it."""
        return [self.part, *map(_task, self.cards)]

    def script(self) -> Json:
        """What the stand-in says to it and to its agents; the session's next order takes its place."""
        stamping = [(_task(card), {"name": "stamp", "arguments": {"card": card}}) for card in self.cards]
        turns = [
            (self.text, _delegation([*map(_task, self.cards[:DIRECT]), self.part])),
            (self.part, _delegation(list(map(_task, self.cards[DIRECT:])))),
            *stamping,
        ]
        return {
            "story": self.session_id,
            "turns": [
                {"user": text.replace(".", r"\."), "replies": [{"tool_calls": [call]}, {"content": "{result:1}"}]}
                for text, call in turns
            ],
        }


def orders(session_id: str) -> Iterator[Order]:
    """Orders without end for one session."""
    return (Order(f"{session_id}-{number}", session_id) for number in count())


def _task(card: str) -> str:
    return f"Stamp the card {card}."


def _delegation(tasks: list[str]) -> Json:
    return {"name": "delegate_task", "arguments": {"tasks": tasks}}
