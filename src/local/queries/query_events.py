"""What becomes known of one query: numbered events for those who follow it, and what is said of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from local.protocol.judgement_messages import CritiqueResult, PairwiseResult, UserFeedback
from local.protocol.messages import (
    AgentTransition,
    ContextProvided,
    GenerationProgress,
    GenerationThinking,
    GenerationToken,
    GenerationWaiting,
    Message,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.protocol.permission_messages import ApprovalDecision, ApprovalRequest
from local.protocol.plan_messages import PlanCreated, PlanStep
from local.protocol.progress_messages import ToolProgress
from local.protocol.subjects import covers
from local.protocol.todo_messages import TodoUpdated

# What tells which attempt it belongs to, and is said of it alone.
Attempted = GenerationThinking | GenerationWaiting | GenerationProgress
Judgement = CritiqueResult | PairwiseResult | UserFeedback
CRITIQUE, PAIRWISE, FEEDBACK = "critique", "pairwise", "feedback"
JUDGEMENTS: dict[type[Message], str] = {CritiqueResult: CRITIQUE, PairwiseResult: PAIRWISE, UserFeedback: FEEDBACK}

KEPT_EVENTS = 5_000
KEPT_PROGRESS_CHARS = 2_000  # of what a call has written since the last event
SNAPSHOT = "snapshot"
EVENT_KINDS: dict[type[Message], str] = {
    QueryAccepted: "accepted",
    AgentTransition: "state",
    ContextProvided: "context",
    GenerationThinking: "thinking",
    GenerationToken: "token",
    GenerationWaiting: "waiting",
    GenerationProgress: "progress",
    ToolRequest: "tool_call",
    ToolProgress: "tool_progress",
    ToolResult: "tool_result",
    ApprovalRequest: "approval",
    ApprovalDecision: "decision",
    TodoUpdated: "todo",
    PlanCreated: "plan",
    PlanStep: "plan_step",
    ResponseGeneration: "response",
    QueryFailed: "error",
    **JUDGEMENTS,
}


@lru_cache(1024)
def kind_of(subject: str) -> type[Message] | None:
    """The message class of a subject that tells of a query; None for any other subject."""
    kinds: tuple[type[Message], ...] = (QueryReceived, *EVENT_KINDS)
    return next((kind for kind in kinds if covers(kind.subject, subject)), None)


class News(NamedTuple):
    """What a message makes known: a value of `EVENT_KINDS` or "snapshot", and one line of JSON."""

    kind: str
    payload: bytes


def news_of(message: Message) -> News:
    """A message as it is; of what a call writes the end, as many of those are kept."""
    if isinstance(message, ToolProgress):
        message = message.model_copy(update={"text": message.text[-KEPT_PROGRESS_CHARS:]})
    return News(EVENT_KINDS[type(message)], message.encode())


class QueryEvent(NamedTuple):
    """News with its number, which counts from 1 within the query."""

    number: int
    kind: str
    payload: bytes


@dataclass(slots=True)
class LogLine:
    """A subject on the log, `t` seconds after the query was asked; `count` equal ones in a row are one line."""

    subject: str
    t: float
    count: int = 1


class QueryEvents:
    """The latest events of one query. An event of kind "snapshot" replaces what was said before it: it stands for
    events that are no longer kept, and for a turn that a restarted generator says again."""

    def __init__(self, snapshot: Callable[[], bytes]) -> None:
        """`snapshot()` is what was said so far, as one line of JSON."""
        self._snapshot = snapshot
        self._events: list[QueryEvent] = []
        self._final = 0  # the number of the event that ended the query
        self.count = 0

    def add(self, news: News, *, is_end: bool) -> None:
        """Append an event; `is_end` says whether the query has ended with it."""
        self.count += 1
        self._events.append(QueryEvent(self.count, *news))
        if is_end and not self._final:
            self._final = self.count
        if len(self._events) >= 2 * KEPT_EVENTS:
            del self._events[:-KEPT_EVENTS]

    def after(self, number: int | None) -> list[QueryEvent]:
        """The events after that number; if they are no longer kept, or for None, a snapshot and what it leaves out."""
        before_kept = self.count - len(self._events)
        if number is not None and before_kept <= number <= self.count:
            return self._events[number - before_kept :]
        at = self._final - 1 if self._final else self.count
        return [QueryEvent(at, SNAPSHOT, self._snapshot()), *self._events[at - before_kept :]]


class Judgements:
    """A critic's word, the comparison with the second respondent's answer, and the user's latest rating. They come live
    and are found on record, so each is taken once, by its envelope."""

    def __init__(self) -> None:
        self._latest: dict[str, Judgement] = {}
        self._heard: set[str] = set()
        self._ruled_out: set[str] = set()

    @property
    def settled(self) -> frozenset[str]:
        """Which kinds have come, or never will."""
        return frozenset(self._latest) | self._ruled_out

    def rule_out(self, kind: str) -> None:
        """None of that kind will come."""
        self._ruled_out.add(kind)

    def hear(self, message: Judgement, envelope_id: str) -> bool:
        """Take a judgement in; says whether it was news."""
        if envelope_id in self._heard:
            return False
        self._heard.add(envelope_id)
        kind = JUDGEMENTS[type(message)]
        known = self._latest.get(kind)
        if isinstance(known, UserFeedback) and isinstance(message, UserFeedback) and message.rated_at < known.rated_at:
            return False
        self._latest[kind] = message
        return True

    def as_json(self) -> dict[str, Any]:
        """The scores of an answer; null is what is not known, a rating also where it was withdrawn."""
        feedback = self._latest.get(FEEDBACK)
        return {
            CRITIQUE: self._shown(CRITIQUE),
            PAIRWISE: self._shown(PAIRWISE),
            "rating": feedback.rating if isinstance(feedback, UserFeedback) else None,
        }

    def _shown(self, kind: str) -> dict[str, Any] | None:
        message = self._latest.get(kind)
        known = {"query_id", "respondent_id", "session_id"}  # by whoever asks
        return None if message is None else message.model_dump(mode="json", exclude=known)
