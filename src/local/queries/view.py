"""The state of one query, computed from its messages, live or recorded: no I/O and no clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Self

from pydantic_core import from_json, to_json

from local.bus.envelope import Envelope, Trace, session_of
from local.bus.message import MAIN_RESPONDENT, TOOL_REQUEST, TOOL_RESULT, ErrorInfo, Message, covers
from local.bus.messages import (
    AgentTransition,
    BusDead,
    ContextProvided,
    GenerationProgress,
    GenerationThinking,
    GenerationToken,
    GenerationWaiting,
    PlanCreated,
    PlanStep,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    TodoUpdated,
    ToolProgress,
    ToolRequest,
    ToolResult,
    latest_list,
    latest_plan,
)
from local.core.errors import LocalError
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.memory.messages import RECALLED, MemoryClassified, MemoryIngested
from local.permissions.messages import ApprovalDecision, ApprovalRequest
from local.queries.errors import QueryIdTaken, QueryRefused
from local.runtime.machine import changes

# The tool calls of one query, put together from requests and results.

Json = dict[str, Any]


class CallLog:
    """The tool calls of one query, in the order in which they were made. If a payload was removed, the headers show
    which result belongs to which request.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Json] = {}
        self._requests: dict[str, str] = {}  # the call_id by the id of the request's envelope
        self._removed: set[str] = set()

    def __iter__(self) -> Iterator[Json]:
        """Each call as JSON: call_id, tool, args, and once it has settled result or error, sources, duration_ms."""
        return iter(self._calls.values())

    @property
    def sources(self) -> Iterator[str]:
        """Return the sources of results."""
        return (source for call in self for source in call.get("sources", ()))

    def is_removed(self, call: Json) -> bool:
        """Whether the call's result was removed from the record."""
        return call["call_id"] in self._removed

    def receive(self, message: ToolRequest | ToolResult, envelope: Envelope) -> None:
        """Take in a request or a result."""
        if isinstance(message, ToolRequest):
            self._requests.setdefault(envelope.id, message.call_id)
            self._call(message.call_id, message.tool)["args"] = message.args
        else:
            self._call(message.call_id, message.tool).update(message.model_dump(mode="json", exclude={"query_id"}))

    def receive_removed(self, envelope: Envelope) -> None:
        """Note a request or a result whose payload was removed."""
        if envelope.subject.startswith(TOOL_REQUEST):
            self._requests.setdefault(envelope.id, envelope.id)
            self._call(envelope.id, envelope.subject.removeprefix(TOOL_REQUEST))
        else:
            request_id = envelope.in_reply_to or envelope.id
            call_id = self._requests.get(request_id, request_id)
            self._call(call_id, envelope.subject.removeprefix(TOOL_RESULT))
            self._removed.add(call_id)

    def _call(self, call_id: str, tool: str) -> Json:
        return self._calls.setdefault(call_id, {"call_id": call_id, "tool": tool})


# A message in one short line, for lists of messages.

LONGEST = 160
_TELLING = {
    "query.received": ("query",),
    "response.generation": ("answer", "error"),
    "query.failed": ("error",),
    "tool.request.": ("args",),
    "tool.result.": ("error", "result"),
    "critique.result": ("score", "feedback"),
    "pairwise.result": ("winner", "feedback"),
    "bus.dead": ("error",),
    "context.provided": ("facts", "recalled"),
    "session.changed": ("title",),
}
_SAID_ELSEWHERE = {"query_id", "session_id", "respondent_id", "attempt", "call_id", "tool", "generator_id"}


def message_summary(subject: str, payload: bytes) -> str | None:
    """Return a summary of the payload, cut to 160 characters; None if there is none, or it is not an object."""
    try:
        value = from_json(payload) if payload else None
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if subject == "agent.transition":
        states = [value.get("from"), value.get("to"), *(each.get("to") for each in value.get("then") or ())]
        return " → ".join(map(str, states))[:LONGEST]
    telling = next((names for known, names in _TELLING.items() if subject.startswith(known)), ())
    said = [_shown(value[name]) for name in telling if value.get(name) not in (None, "", {})]
    return _cut(": ".join(said) if said else " ".join(_rest(value)))


def _rest(value: dict[str, Any]) -> list[str]:
    return [
        f"{name}={_shown(item)}"
        for name, item in value.items()
        if name not in _SAID_ELSEWHERE and item not in (None, "", [], {}, False)
    ]


def _shown(item: Any) -> str:
    if isinstance(item, dict) and "message" in item:
        return str(item["message"])
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    line = " ".join(text[: 4 * LONGEST].split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 2]} …"


# The changes of one query: numbered events for its followers, and the judgements of its answer.

# Messages that belong to an attempt, and are valid only for it.
Attempted = GenerationThinking | GenerationWaiting | GenerationProgress
Judgement = CritiqueResult | PairwiseResult | UserFeedback
CRITIQUE, PAIRWISE, FEEDBACK = "critique", "pairwise", "feedback"
JUDGEMENTS: dict[type[Message], str] = {CritiqueResult: CRITIQUE, PairwiseResult: PAIRWISE, UserFeedback: FEEDBACK}

KEPT_EVENTS = 5_000
KEPT_PROGRESS_CHARS = 2_000  # of a call's output since the last event
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
    """Return the message class of a subject about a query; None for any other subject."""
    kinds: tuple[type[Message], ...] = (QueryReceived, *EVENT_KINDS)
    return next((kind for kind in kinds if covers(kind.subject, subject)), None)


class QueryDelta(NamedTuple):
    """One change of a query for those who follow it: a value of `EVENT_KINDS` or "snapshot", and one line of JSON."""

    kind: str
    payload: bytes


def news_of(message: Message) -> QueryDelta:
    """Return a message unchanged; of a call's output only the end, because many of those are kept."""
    if isinstance(message, ToolProgress):
        message = message.model_copy(update={"text": message.text[-KEPT_PROGRESS_CHARS:]})
    return QueryDelta(EVENT_KINDS[type(message)], message.encode())


class QueryEvent(NamedTuple):
    """A `QueryDelta` with its number, which counts from 1 within the query."""

    number: int
    kind: str
    payload: bytes


@dataclass(slots=True)
class LogLine:
    """One line of a query's log: a subject, `t` seconds after the query was asked; `count` equal consecutive ones are
    one line.
    """

    subject: str
    t: float
    count: int = 1


class QueryEvents:
    """The latest events of one query. An event of kind "snapshot" replaces the earlier text: it stands for events that
    are no longer kept, and for a turn that a restarted generator repeats.
    """

    def __init__(self, snapshot: Callable[[], bytes]) -> None:
        """`snapshot()` returns the state so far, as one line of JSON."""
        self._snapshot = snapshot
        self._events: list[QueryEvent] = []
        self._final = 0  # the number of the event that ended the query
        self.count = 0

    def add(self, news: QueryDelta, *, is_end: bool) -> None:
        """Append an event; `is_end` says whether the query has ended with it."""
        self.count += 1
        self._events.append(QueryEvent(self.count, *news))
        if is_end and not self._final:
            self._final = self.count
        if len(self._events) >= 2 * KEPT_EVENTS:
            del self._events[:-KEPT_EVENTS]

    def after(self, number: int | None) -> list[QueryEvent]:
        """Return the events after that number; if they are no longer kept, or for None, a snapshot and the events that
        it omits.
        """
        before_kept = self.count - len(self._events)
        if number is not None and before_kept <= number <= self.count:
            return self._events[number - before_kept :]
        at = self._final - 1 if self._final else self.count
        return [QueryEvent(at, SNAPSHOT, self._snapshot()), *self._events[at - before_kept :]]


class Judgements:
    """The judgements of an answer: the critic's grade, the comparison with the second respondent's answer, and the
    user's latest rating. They arrive live and from the journal, so each is counted once, by its envelope.
    """

    def __init__(self) -> None:
        self._latest: dict[str, Judgement] = {}
        self._heard: set[str] = set()
        self._ruled_out: set[str] = set()

    @property
    def settled(self) -> frozenset[str]:
        """Return the kinds that have come, or never will."""
        return frozenset(self._latest) | self._ruled_out

    def rule_out(self, kind: str) -> None:
        """Note that none of that kind will come."""
        self._ruled_out.add(kind)

    def receive(self, message: Judgement, envelope_id: str) -> bool:
        """Add a judgement; returns whether it was new."""
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
        """Return the scores of an answer; null for unknown ones and withdrawn ratings."""
        feedback = self._latest.get(FEEDBACK)
        return {
            CRITIQUE: self._shown(CRITIQUE),
            PAIRWISE: self._shown(PAIRWISE),
            "rating": feedback.rating if isinstance(feedback, UserFeedback) else None,
        }

    def _shown(self, kind: str) -> dict[str, Any] | None:
        message = self._latest.get(kind)
        known = {"query_id", "respondent_id", "session_id"}  # known to the caller
        return None if message is None else message.model_dump(mode="json", exclude=known)


# The spans of a query's time, and their sums. Computed without I/O or a clock.

Kind = Literal["line", "model", "tool", "memory", "critic", "store", "other"]
FIRST_COUNTS: tuple[Kind, ...] = ("model", "tool", "memory", "line", "store", "critic")
WHOLE = "query"  # the id of the span that all others are in


class TraceSpan(NamedTuple):
    """One bar of the waterfall, from `started` to `ended`, in seconds since 1970; None while it lasts, or if its end is
    not known. `attempt` is the attempt at the turn in which it began."""

    id: str
    parent: str | None
    kind: Kind
    name: str
    started: float
    ended: float | None
    attempt: int
    detail: Mapping[str, Any]


def critical_path(spans: Sequence[TraceSpan], end: float) -> list[str]:
    """The ids of the spans that an answer at `end` had to wait for: each is the one that ended last before the next one
    began."""
    left = [span for span in _parts(spans) if span.started < end]
    path: list[str] = []
    at = end
    while fitting := [span for span in left if _end_of(span, end) <= at]:
        latest = max(fitting, key=lambda span: (_end_of(span, end), span.started))
        path.append(latest.id)
        at = latest.started
        left = [span for span in left if span.started < at]
    return path[::-1]


def self_time(spans: Sequence[TraceSpan], start: float, end: float) -> dict[str, float]:
    """Return seconds by kind from `start` to the answer at `end`, each moment counted once: for the model first, then
    for tools; `other` is the rest.
    """
    parts = [span for span in _parts(spans) if span.started < end]
    edges = {start, end, *(span.started for span in parts), *(_end_of(span, end) for span in parts)}
    seconds: dict[str, float] = {}
    for began, ended in pairwise(sorted(edges)):
        kinds = {span.kind for span in parts if span.started <= began and _end_of(span, end) >= ended}
        kind = next((each for each in FIRST_COUNTS if each in kinds), "other")
        seconds[kind] = seconds.get(kind, 0.0) + ended - began
    return {kind: round(value, 6) for kind, value in seconds.items()}


def _parts(spans: Sequence[TraceSpan]) -> list[TraceSpan]:
    """Return the spans of the main respondent's answer, without those of other respondents, for which no user waits."""
    return [span for span in spans if span.parent == WHOLE and span.kind != "other"]


def _end_of(span: TraceSpan, end: float) -> float:
    return end if span.ended is None else min(span.ended, end)


# The time of one query: spans computed from the messages that it has caused, without I/O or a clock.

MEMORY_TOOL = "search_memory"
GENERATING = "GENERATING"  # as agent.transition names the state in which the model works
LATER = {"grade": "GRADING", "comparison": "COMPARING", "classified": "CLASSIFYING"}  # states of the work that follows


class AttemptSpan(NamedTuple):
    """One attempt at a turn, with the reason why an earlier one was not the last."""

    attempt: int
    started: float
    ended: float | None
    reason: str | None


class _Drawn(NamedTuple):
    kind: Kind
    name: str
    started: float
    ended: float | None
    respondent_id: str
    detail: Mapping[str, Any]


@dataclass(slots=True)
class _Call:
    tool: str
    started: float
    respondent_id: str = MAIN_RESPONDENT
    ended: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)


class _Heard:
    """The state of one respondent in the timeline."""

    def __init__(self) -> None:
        self.first_at: float | None = None
        self.ended_at: float | None = None
        self.response: ResponseGeneration | None = None
        self.generating: list[tuple[float, float | None, bool]] = []  # from, to, whether a new attempt has ended it
        self._since: float | None = None

    def change(self, change: AgentTransition, at: float) -> None:
        if self.first_at is None:
            self.first_at = at
        if self._since is not None and change.to_state != GENERATING:
            self.generating.append((self._since, at, change.from_state == "IDLE"))
            self._since = None
        if change.to_state == GENERATING:
            self._since = at

    def end(self, at: float) -> None:
        self.ended_at = at
        if self._since is not None:
            self.generating.append((self._since, at, False))
            self._since = None

    def models(self) -> Iterator[tuple[float, float | None, dict[str, Any]]]:
        """Return the calls of the model from the answer, and those that died with their process; without such an
        answer, the times in which the model worked.
        """
        steps = () if self.response is None else self.response.usage.steps
        for step in steps:
            yield step.started, step.ended, step.model_dump(exclude={"started", "ended"})
        for began, ended, is_cut_off in self.generating:
            if not steps or (is_cut_off and not any(began <= step.started < (ended or began) for step in steps)):
                yield began, ended, {"cut_off": True} if is_cut_off else {}
        if self._since is not None:
            yield self._since, None, {}


class QueryTrace:
    """The timeline of one query, computed from its messages in the order of the journal, None for one whose payload
    was removed.
    """

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id
        self.asked_at: float | None = None
        self.is_complete = True  # that no payload was removed, and the query has ended
        self._respondents: dict[str, _Heard] = {}
        self._calls: dict[str, _Call] = {}  # by the id of the request's envelope
        self._begun: dict[int, float] = {}  # attempts
        self._given_up = ""
        self._after: list[tuple[Kind, str, float, dict[str, Any]]] = []  # what followed from the answer, and when
        self._later: dict[str, float] = {}  # when the work that follows from the answer began, by state
        self._last_at = 0.0

    @classmethod
    def of(cls, query_id: str, messages: Iterable[tuple[Message | None, Envelope]]) -> Self:
        """Compute the trace from these messages."""
        trace = cls(query_id)
        for message, envelope in messages:
            trace.receive(message, envelope)
        return trace

    @property
    def has_ended(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._main.ended_at is not None

    @property
    def _main(self) -> _Heard:
        return self._heard(MAIN_RESPONDENT)

    def _heard(self, respondent_id: str) -> _Heard:
        return self._respondents.setdefault(respondent_id, _Heard())

    # The fold

    def receive(self, message: Message | None, envelope: Envelope) -> None:
        """Add one message."""
        at, subject = envelope.sent_at, envelope.subject
        self._last_at = max(self._last_at, at)
        if message is None:
            self.is_complete = False
        if subject.startswith(ToolRequest.subject):
            self._call(message, envelope)
        elif subject.startswith(ToolResult.subject):
            self._result(message, envelope)
        elif subject == QueryReceived.subject:
            self.asked_at = at if self.asked_at is None else min(self.asked_at, at)
        elif message is None and subject in (ResponseGeneration.subject, QueryFailed.subject):
            self._main.end(at)
        else:
            self._note(message, at)

    def _note(self, message: Message | None, at: float) -> None:
        match message:
            case QueryAccepted(respondent_id="A", attempt=attempt):
                self._begun.setdefault(attempt, at)
            case AgentTransition():
                for change in changes(message):
                    self._change(change, at)
            case ResponseGeneration() | QueryFailed():
                heard = self._heard(message.respondent_id)
                heard.response = message if isinstance(message, ResponseGeneration) else None
                heard.end(at)
            case CritiqueResult(respondent_id="A"):
                self._after.append(("critic", "grade", at, {"score": message.score, "status": message.status}))
            case PairwiseResult():
                self._after.append(("critic", "comparison", at, {"winner": message.winner, "status": message.status}))
            case MemoryIngested(respondent_id="A"):
                self._after.append(("memory", "remembered", at, {"engram_id": message.engram_id}))
            case MemoryClassified():
                self._after.append(("memory", "classified", at, {"status": message.status}))
            case BusDead():
                self._given_up = message.error.message

    def _change(self, change: AgentTransition, at: float) -> None:
        if change.to_state in LATER.values():
            self._later.setdefault(change.to_state, at)
        elif change.from_state not in LATER.values():
            self._heard(change.respondent_id).change(change, at)

    def _call(self, message: Message | None, envelope: Envelope) -> None:
        call = _Call(envelope.subject.removeprefix(ToolRequest.subject), envelope.sent_at)
        if isinstance(message, ToolRequest):
            call.respondent_id, call.detail = message.respondent_id, {"call_id": message.call_id}
        self._calls.setdefault(envelope.id, call)

    def _result(self, message: Message | None, envelope: Envelope) -> None:
        call = self._calls.get(envelope.in_reply_to or "")
        if call is None or call.ended is not None:
            return
        call.ended = envelope.sent_at
        if isinstance(message, ToolResult):
            call.detail["duration_ms"] = message.duration_ms
            if message.error is not None:
                call.detail["error"] = message.error.model_dump()

    # The result

    def spans(self) -> list[TraceSpan]:
        """Every span, the earliest first; that of the whole query before all others."""
        if self.asked_at is None:
            return []
        spans = [TraceSpan(WHOLE, None, "other", "query", self.asked_at, self._main.ended_at, 1, {})]
        numbers: dict[str, int] = {}
        others = {MAIN_RESPONDENT: WHOLE}
        for drawn in sorted(self._drawn(), key=lambda each: each.started):
            number = numbers[drawn.kind] = numbers.get(drawn.kind, 0) + 1
            span_id = f"{drawn.kind}-{number}"
            is_respondent = drawn.kind == "other"
            parent = WHOLE if is_respondent else others.get(drawn.respondent_id, WHOLE)
            if is_respondent:
                others[drawn.respondent_id] = span_id
            attempt = self._attempt_at(drawn.started)
            spans.append(
                TraceSpan(span_id, parent, drawn.kind, drawn.name, drawn.started, drawn.ended, attempt, drawn.detail)
            )
        return spans

    def attempts(self) -> list[AttemptSpan]:
        """Return the attempts at the turn, as far as they are recorded."""
        begun = sorted(self._begun.items())
        ends = [*(at for _, at in begun[1:]), self._main.ended_at]
        why = "the process that ran it was replaced"
        spans = [
            AttemptSpan(number, at, end, why if number > 1 else None)
            for (number, at), end in zip(begun, ends, strict=True)
        ] if begun else []  # fmt: skip
        if spans and self._given_up:
            spans[-1] = spans[-1]._replace(reason=self._given_up)
        return spans

    def critical_path(self) -> list[str]:
        """The ids of the spans that the answer had to wait for, one after the other."""
        return critical_path(self.spans(), self._end)

    def self_time(self) -> dict[str, float]:
        """Seconds until the answer by kind, each moment counted once."""
        return {} if self.asked_at is None else self_time(self.spans(), self.asked_at, self._end)

    @property
    def _end(self) -> float:
        """Return the time of the answer, or of the last message."""
        return self._main.ended_at if self._main.ended_at is not None else self._last_at

    def _attempt_at(self, at: float) -> int:
        return max((number for number, begun in self._begun.items() if begun <= at), default=1)

    def _drawn(self) -> Iterator[_Drawn]:
        yield from self._beginning()
        for respondent_id, heard in self._respondents.items():
            if respondent_id != MAIN_RESPONDENT and heard.first_at is not None:
                name = f"respondent {respondent_id}"
                yield _Drawn("other", name, heard.first_at, heard.ended_at, respondent_id, {})
            for began, ended, detail in heard.models():
                yield _Drawn("model", str(detail.get("model") or "model"), began, ended, respondent_id, detail)
        for call in self._calls.values():
            kind: Kind = "memory" if call.tool == MEMORY_TOOL else "tool"
            yield _Drawn(kind, call.tool, call.started, call.ended, call.respondent_id, call.detail)
        answered_at = self._main.ended_at
        for kind, name, at, detail in self._after if answered_at is not None else ():
            began = self._later.get(LATER.get(name, ""), answered_at or at)
            yield _Drawn(kind, name, min(at, began), at, MAIN_RESPONDENT, detail)

    def _beginning(self) -> Iterator[_Drawn]:
        """The spans until it was recorded and delivered, and until its turn began."""
        asked, accepted, first = self.asked_at, self._begun.get(1), self._main.first_at
        known = [at for at in (accepted, first) if at is not None]
        if asked is None or not known:
            return
        yield _Drawn("store", "recorded", asked, max(asked, min(known)), MAIN_RESPONDENT, {})
        if accepted is not None and (first is None or first > accepted):
            yield _Drawn("line", "waits for its turn", accepted, first or self._main.ended_at, MAIN_RESPONDENT, {})


# The to-do list and plan of a query, from the calls of its built-in tools.

NO_WORK: Final = MappingProxyType[str, Any]({"todo": (), "plan": None})


def work_of(calls: Sequence[Json]) -> Json:
    """Return the to-do list and the plan after these calls."""
    return {"todo": latest_list(calls), "plan": latest_plan(calls)}


KEPT_LOG_LINES = 5_000


class QueryView:
    """The state of one query as one respondent answers it, computed from its messages. Each attempt is a fence:
    messages of an earlier attempt are ignored once a later one has begun, and so is everything but judgements after
    the end.

    With `query` text and user are known, and a message of another query under the same id is a failure
    (`QueryIdTaken`); without, they are taken from the envelopes.
    """

    def __init__(
        self,
        query_id: str,
        query: str | None = None,
        session_id: str | None = None,
        *,
        user_id: str | None = None,
        respondent_id: str = MAIN_RESPONDENT,
    ) -> None:
        self.query_id, self.session_id, self.respondent_id = query_id, session_id or query_id, respondent_id
        self.query, self._expected, self.user_id = query, query, user_id
        self.response: ResponseGeneration | None = None
        self.failure: LocalError | None = None  # the reason why there is no response
        self.is_outcome_removed = False
        self.answers: dict[str, Trace] = {}  # by respondent, for messages that follow from an answer
        self.answered_at = 0.0  # seconds since 1970, 0 until there is an answer
        self.judgements = Judgements()
        self.context: ContextProvided | None = None  # the memories added to the prompt
        self.log: list[LogLine] = []
        self.states: list[AgentTransition] = []
        self._attempt = self._next_index = 0
        self._is_complete = False
        self._thinking: list[str] = []
        self._answer: list[str] = []
        self._reading: GenerationProgress | None = None  # while nothing else has happened since

    @cached_property
    def calls(self) -> CallLog:
        """The tool calls; most queries make none."""
        return CallLog()

    @classmethod
    def of(cls, query_id: str, messages: Iterable[tuple[Message, Envelope]]) -> QueryView:
        """Compute the view from recorded messages."""
        view = cls(query_id)
        for message, envelope in messages:
            view.receive(message, envelope)
        return view

    @property
    def ended(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self.response is not None or self.failure is not None

    @property
    def status(self) -> str:
        """open, answered, cancelled or failed."""
        if self.response is not None:
            return self.response.status
        if self.failure is None:
            return "open"
        return "cancelled" if self.failure.kind == "cancelled" else "failed"

    @property
    def thinking(self) -> str:
        """Return the thinking, as far as it is known."""
        return "".join(self._thinking) if self.response is None else self.response.thinking

    @property
    def answer(self) -> str:
        """Return the answer, as far as it is known."""
        return "".join(self._answer) if self.response is None else self.response.answer

    @property
    def sources(self) -> list[str]:
        """The sources of the tools' results, without duplicates."""
        recorded = () if self.response is None else self.response.tool_calls
        return list(dict.fromkeys((*self.calls.sources, *(source for call in recorded for source in call.sources))))

    def require(self, query: str, user_id: str | None) -> None:
        """Raises `QueryIdTaken` if this view is of another text, or another user's."""
        if self._expected is not None and (query, user_id) != (self._expected, self.user_id):
            raise QueryIdTaken(self.query_id)

    def has_recalled(self, engram_id: str) -> bool:
        """Whether a tool's result or the context of the prompt contains that engram."""
        is_told = self.context is not None and engram_id in self.context.engram_ids
        return is_told or RECALLED + engram_id in self.sources

    def lacks(self, judgements: Collection[str]) -> bool:
        """Whether the query has an answer that is judged, and some of these judgements of it may yet come."""
        response = self.response
        is_judged = response is not None and response.status == "answered" and not response.incognito
        return is_judged and not self.judgements.settled.issuperset(judgements)

    # The fold

    def receive(self, message: Message | None, envelope: Envelope, t: float | None = None) -> list[QueryDelta] | None:
        """Add one message, None for one whose payload was removed; with `t`, seconds since the query was asked, it is
        put on the log. Returns its events; None if it changes nothing.
        """
        if message is None:
            return self._receive_removed(envelope)
        if isinstance(message, QueryReceived):
            return self._receive_query(message, envelope)
        if getattr(message, "respondent_id", self.respondent_id) != self.respondent_id:
            return self._receive_of_another(message, envelope)
        if not self._is_news(message, envelope.id):
            return None
        if t is not None:
            self.note(envelope.subject, t)
        return [*self._begin_attempt(message), *self._fold(message, envelope)]

    def fail(self, error: LocalError) -> list[QueryDelta] | None:
        """End with an error, because no answer will come. Returns as `receive`."""
        if self.ended:
            return None
        self.failure = error
        return [QueryDelta("error", to_json({"query_id": self.query_id, "error": _as_error(error)}))]

    def note(self, subject: str, t: float) -> None:
        """Put a subject on the log."""
        if self.log and self.log[-1].subject == subject:
            self.log[-1].count += 1
        elif len(self.log) < KEPT_LOG_LINES:
            self.log.append(LogLine(subject, round(t, 6)))

    def _is_news(self, message: Message, envelope_id: str) -> bool:
        if isinstance(message, Judgement):
            return self.judgements.receive(message, envelope_id)
        if self.ended:
            return False
        if isinstance(message, QueryAccepted):
            return message.attempt > self._attempt
        return not isinstance(message, Attempted) or message.attempt >= self._attempt

    def _begin_attempt(self, message: Message) -> Iterator[QueryDelta]:
        """Begin a new attempt: a restarted generator or model repeats its output from the last stored step."""
        if not isinstance(message, QueryAccepted | Attempted) or message.attempt <= self._attempt:
            return
        said = self._thinking or self._answer
        self._attempt, self._next_index, self._is_complete = message.attempt, 0, False
        self._thinking, self._answer = [], []
        if said:
            yield QueryDelta(SNAPSHOT, to_json(self.partial_answer()))

    def _fold(self, message: Message, envelope: Envelope) -> Iterable[QueryDelta]:
        self._reading = message if isinstance(message, GenerationProgress) else None
        match message:
            case ResponseGeneration():
                return self._end(message, envelope)
            case QueryFailed():
                return self.fail(QueryRefused(message.error.kind, message.error.message)) or ()
            case QueryAccepted():
                return (QueryDelta("accepted", to_json({**message.model_dump(), "session_id": self.session_id})),)
            case GenerationThinking():
                self._receive(message)
            case AgentTransition():
                return [self._advance(change) for change in changes(message)]
            case ToolRequest() | ToolResult():
                self.calls.receive(message, envelope)
            case ContextProvided():
                self.context = message
        return (news_of(message),)

    def _advance(self, change: AgentTransition) -> QueryDelta:
        self.states.append(change)
        if change.from_state == "IDLE":  # a later attempt does not repeat what it has from an earlier one
            self._is_complete = self._attempt == 1
        return QueryDelta("state", change.encode())

    def _receive(self, fragment: GenerationThinking) -> None:
        self._is_complete = self._is_complete and fragment.index == self._next_index
        self._next_index = fragment.index + 1
        texts = self._answer if isinstance(fragment, GenerationToken) else self._thinking
        texts.append(fragment.text)

    def _end(self, response: ResponseGeneration, envelope: Envelope) -> Iterable[QueryDelta]:
        try:
            self.require(response.query, envelope.user_id)
        except QueryIdTaken as error:
            return self.fail(error) or ()
        self.response, self.answered_at = response, envelope.sent_at
        self.session_id = envelope.session_id or self.session_id
        self._note_answer(response, envelope)
        return (QueryDelta("response", response.encode()),)

    def _note_answer(self, outcome: QueryFailed | ResponseGeneration, envelope: Envelope) -> bool:
        is_answer = isinstance(outcome, ResponseGeneration) and outcome.status == "answered"
        if is_answer:
            self.answers.setdefault(outcome.respondent_id, envelope.trace())
        return is_answer

    def _receive_query(self, message: QueryReceived, envelope: Envelope) -> list[QueryDelta] | None:
        try:
            self.require(message.query, envelope.user_id)
        except QueryIdTaken as error:
            return self.fail(error)
        self.query, self.session_id = message.query, session_of(envelope, message.query_id)
        self.user_id = envelope.user_id
        return None

    def _receive_of_another(self, message: Message, envelope: Envelope) -> list[QueryDelta] | None:
        """Another respondent that has ended without an answer leaves nothing to compare."""
        if not isinstance(message, QueryFailed | ResponseGeneration) or self._note_answer(message, envelope):
            return None
        self.judgements.rule_out(PAIRWISE)
        return []

    def _receive_removed(self, envelope: Envelope) -> list[QueryDelta] | None:
        if envelope.subject.startswith((ToolRequest.subject, ToolResult.subject)):
            self.calls.receive_removed(envelope)
        elif envelope.subject in (QueryFailed.subject, ResponseGeneration.subject):
            self.is_outcome_removed = True
        return None

    # As JSON

    def as_json(self) -> Json:
        """Return the state of the query: its answer, why there is none, or the text so far."""
        if self.response is not None:
            return self._answer_as_json(self.response)
        known = {"query_id": self.query_id, "session_id": self.session_id, "query": self.query, "status": self.status}
        if self.failure is not None:
            return {**known, "error": _as_error(self.failure)}
        return {**known, **self.partial_answer()} if self.log else known  # on record is only that it was asked

    def as_cancelled(self) -> Json:
        """The answer to a query that was cancelled while it waited in line: an empty one, cancelled like any other."""
        response = ResponseGeneration(
            query_id=self.query_id, status="cancelled", query=self.query or "", answer="",
            error=None if self.failure is None else ErrorInfo.model_validate(_as_error(self.failure)),
        )  # fmt: skip
        return self._answer_as_json(response)

    def partial_answer(self) -> Json:
        """Return the thinking, text and calls so far; `complete` if no message was lost. `reading` while the model
        reads its prompt: `done` of `total` tokens.
        """
        calls = list(self.calls)
        read = self._reading
        return {
            "query_id": self.query_id,
            "session_id": self.session_id,
            "attempt": self._attempt,
            "complete": self._is_complete,
            "thinking": "".join(self._thinking),
            "answer": "".join(self._answer),
            "context": _as_context(self.context),
            "tool_calls": calls,
            **(work_of(calls) if calls else NO_WORK),
            **({} if read is None else {"reading": {"done": read.done, "total": read.total}}),
        }

    def _answer_as_json(self, response: ResponseGeneration) -> Json:
        calls = [call.model_dump(mode="json", exclude={"made_by"}) for call in response.tool_calls]  # it made them
        return {
            "query_id": response.query_id,
            "session_id": self.session_id,
            "status": response.status,
            "answer": response.answer,
            "thinking": response.thinking,
            "context": _as_context(self.context),
            "tool_calls": calls,
            **(work_of(calls) if calls else NO_WORK),
            "model": response.model,
            "usage": response.usage,
            "degraded": response.degraded,
            "error": response.error,
            "scores": self.judgements.as_json(),
            "events": list(dict.fromkeys(line.subject for line in self.log)),
            "event_log": self.log,
        }


def _as_context(context: ContextProvided | None) -> Json | None:
    return None if context is None else context.model_dump(mode="json", exclude={"query_id", "respondent_id"})


def _as_error(error: LocalError) -> Json:
    return {"kind": error.kind, "message": str(error)}
