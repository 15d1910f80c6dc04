"""What a prompt is made from, before anything has to make room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from local.agents.answering.attached import Attached
from local.agents.answering.context.summary import Summary
from local.models.chat import Json


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier question and its answer. `position` is its number in the session, from 1."""

    position: int
    messages: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """One prompt's material. `exchanges` are those after the summary's last; `steps` is what happened since the
    question: the model's messages, tool results in the order of their calls, and what the turn told the model."""

    system: tuple[Json, ...]
    question: Json
    tools: tuple[Json, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    steps: tuple[Json, ...] = ()
    summary: Summary = field(default_factory=Summary)
    query: str = ""

    @classmethod
    def beginning(cls, prelude: Sequence[Json], query: str, summary: Summary, attached: Attached | None = None) -> Self:
        """What a turn begins with. `prelude` is the system messages and the history after what is in the summary."""
        system = tuple(message for message in prelude if message.get("role") == "system")
        history = [message for message in prelude if message.get("role") != "system"]
        question = (attached or Attached()).question(query)
        exchanges = exchanges_of(history, summary.through)
        return cls(system, question, exchanges=exchanges, summary=summary, query=query)

    @property
    def asked(self) -> str:
        """The question's text, without what is attached."""
        return self.query or str(self.question.get("content") or "")

    @property
    def ranked_characters(self) -> int:
        """How much there is of what may be cut to what has most to do with the question: results and the summary."""
        results = sum(len(str(step.get("content") or "")) for step in self.steps)
        return results + sum(map(len, self.summary.facts)) + len(self.summary.story)


def exchanges_of(history: Sequence[Json], after: int = 0) -> tuple[Exchange, ...]:
    """A history as exchanges, the first of them number `after` + 1: a new one begins with each user's message."""
    groups: list[list[Json]] = []
    for message in history:
        if message.get("role") == "user" or not groups:
            groups.append([])
        groups[-1].append(message)
    return tuple(Exchange(number, tuple(group)) for number, group in enumerate(groups, after + 1))


def rounds_of(steps: Sequence[Json]) -> list[tuple[Json, ...]]:
    """The steps in groups that belong together: a message with calls and their results, or one other message."""
    groups: list[list[Json]] = []
    for message in steps:
        if message.get("role") == "tool" and groups and groups[-1][0].get("tool_calls"):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]
