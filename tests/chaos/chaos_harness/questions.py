"""What one user asks, in rounds: tell something, have a card stamped, ask back what was told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from chaos_harness.history import Question


def questions(session_id: str) -> Iterator[Question]:
    """Questions without end for one session, worded for the stand-in's rules; each text is asked once only.

    The third of each round is answered from the conversation, so it comes out wrong if the first was lost or doubled.
    """
    for number in count():
        query_id = f"{session_id}-{number}"
        match number % 3:
            case 0:
                yield Question(query_id, session_id, f"My badge number is {query_id}.", query_id)
            case 1:
                text = f"Please stamp card {query_id}."
                yield Question(query_id, session_id, text, f"stamped: {text}", is_effect=True)
            case 2:
                text = f"Can you remind me of my badge number? ({query_id})"
                yield Question(query_id, session_id, text, f"{session_id}-{number - 2}.")
