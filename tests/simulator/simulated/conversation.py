"""The generator's database, as generator/history.py has it: turns, their steps and results, their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.generator.steps import Step
from local.models.chat import Json

Outcome = tuple[str, bytes]  # subject and payload


@dataclass
class StoredTurn:
    """One query: what was asked, how far it got, how it ended."""

    query_id: str
    session_id: str
    steps: list[Step] = field(default_factory=list)
    results: dict[str, ToolCallRecord] = field(default_factory=dict)  # by call_id, of the step that is not stored yet
    answer: str = ""
    outcome: Outcome | None = None


@dataclass
class Conversation:
    """Every method is one transaction. `repeated` are model calls and tool calls whose result was on record already."""

    owner: str = ""
    turns: dict[str, StoredTurn] = field(default_factory=dict)  # in order of acceptance
    cancelled: set[str] = field(default_factory=set)
    repeated: list[str] = field(default_factory=list)
    poisoned: Counter[str] = field(default_factory=Counter)  # how many processes a query has killed

    def accept(self, query_id: str, session_id: str) -> None:
        """Store a query unless it is known."""
        self.turns.setdefault(query_id, StoredTurn(query_id, session_id))

    def cancel(self, query_id: str) -> None:
        """Remember that a query is to end, stored or still to come."""
        self.cancelled.add(query_id)

    def add_steps(self, stored: StoredTurn, first: int, steps: Sequence[Step]) -> None:
        """Store steps; results that were kept one by one are in them."""
        stored.steps[first:] = steps
        stored.results.clear()

    def keep_result(self, stored: StoredTurn, record: ToolCallRecord) -> None:
        """Store one result of several that are on their way."""
        stored.results[record.call_id] = record

    def finish(self, stored: StoredTurn, outcome: Outcome, answer: str = "") -> None:
        """Store how a turn ended."""
        if stored.outcome is None:
            stored.outcome, stored.answer = outcome, answer
            stored.steps, stored.results = [], {}

    def history(self, stored: StoredTurn) -> tuple[Json, ...]:
        """What was answered in the session before."""
        messages: list[Json] = []
        for other in self.turns.values():
            if other is stored:
                break
            if other.session_id == stored.session_id and other.answer:
                messages += [
                    {"role": "user", "content": other.query_id},
                    {"role": "assistant", "content": other.answer},
                ]
        return tuple(messages)


def outcome_of(response: ResponseGeneration) -> Outcome:
    """A response as it is stored and sent."""
    return response.subject, response.encode()
