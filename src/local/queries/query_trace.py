"""What the time of one query went into: spans folded from the messages that it has caused, without I/O or a clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from local.protocol.envelope import Envelope
from local.protocol.judgement_messages import CritiqueResult, PairwiseResult
from local.protocol.memory_messages import MemoryClassified, MemoryIngested
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import (
    AgentTransition,
    BusDead,
    Message,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.queries.trace_span import WHOLE, Kind, TraceSpan, critical_path, self_time
from local.runtime.machine import changes

MEMORY_TOOL = "search_memory"
GENERATING = "GENERATING"  # as agent.transition names the state in which the model works
LATER = {"grade": "GRADING", "comparison": "COMPARING", "classified": "CLASSIFYING"}  # in which what follows is made


class AttemptSpan(NamedTuple):
    """One go at the turn, with why there was another one after those before it."""

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
    """What the fold knows of one respondent."""

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
        """The calls of the model as the answer tells them, and those that died with their process; as far as there is
        no answer that does, the times in which the model worked."""
        steps = () if self.response is None else self.response.usage.steps
        for step in steps:
            yield step.started, step.ended, step.model_dump(exclude={"started", "ended"})
        for began, ended, is_cut_off in self.generating:
            if not steps or (is_cut_off and not any(began <= step.started < (ended or began) for step in steps)):
                yield began, ended, {"cut_off": True} if is_cut_off else {}
        if self._since is not None:
            yield self._since, None, {}


class QueryTrace:
    """Made of the messages of one query in the order of the record, None for one whose payload was removed."""

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id
        self.asked_at: float | None = None
        self.is_complete = True  # that no payload was removed, and the query has ended
        self._respondents: dict[str, _Heard] = {}
        self._calls: dict[str, _Call] = {}  # by the id of the request's envelope
        self._begun: dict[int, float] = {}  # attempts
        self._given_up = ""
        self._after: list[tuple[Kind, str, float, dict[str, Any]]] = []  # what came of the answer, and when
        self._later: dict[str, float] = {}  # when somebody began with what follows from the answer, by state
        self._last_at = 0.0

    @classmethod
    def of(cls, query_id: str, messages: Iterable[tuple[Message | None, Envelope]]) -> Self:
        """The trace that these tell of."""
        trace = cls(query_id)
        for message, envelope in messages:
            trace.hear(message, envelope)
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

    def hear(self, message: Message | None, envelope: Envelope) -> None:
        """Take in one message."""
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

    # What it tells

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
        """Each go at the turn, as far as they are on record."""
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
        """When the answer was there, or what was last heard."""
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
        """Until it was on record and delivered, and until its turn came."""
        asked, accepted, first = self.asked_at, self._begun.get(1), self._main.first_at
        known = [at for at in (accepted, first) if at is not None]
        if asked is None or not known:
            return
        yield _Drawn("store", "put on record", asked, max(asked, min(known)), MAIN_RESPONDENT, {})
        if accepted is not None and (first is None or first > accepted):
            yield _Drawn("line", "waits for its turn", accepted, first or self._main.ended_at, MAIN_RESPONDENT, {})
