"""One query as the envelopes tell it that it has caused: a fold, live or from the record, without I/O or a clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from local.errors import LocalError
from local.protocol.envelope import Envelope, Trace, session_of
from local.protocol.memory_messages import RECALLED
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import (
    AgentTransition,
    ContextProvided,
    ErrorInfo,
    GenerationProgress,
    GenerationThinking,
    GenerationToken,
    Message,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.queries.call_log import CallLog
from local.queries.errors import QueryIdTaken, QueryRefused
from local.queries.query_events import PAIRWISE, SNAPSHOT, Attempted, Judgement, Judgements, LogLine, News, news_of
from local.queries.query_work import NO_WORK, work_of
from local.runtime.machine import changes

Json = dict[str, Any]

KEPT_LOG_LINES = 5_000


class QueryView:
    """One query and what one respondent makes of it. Each attempt is a fence: what an earlier attempt says after a
    later one has begun is ignored, and so is all but judgements after the end.

    With `query` text and user are known, and what belongs to others under the same id is a failure (`QueryIdTaken`);
    without, they are what the envelopes tell.
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
        self.failure: LocalError | None = None  # why there is no response
        self.is_outcome_removed = False
        self.answers: dict[str, Trace] = {}  # by respondent, for what follows from an answer
        self.answered_at = 0.0  # seconds since 1970, 0 until there is an answer
        self.judgements = Judgements()
        self.context: ContextProvided | None = None  # what the model was told of the user unasked
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
        """What messages on record tell."""
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
        """What was thought, as far as it is known."""
        return "".join(self._thinking) if self.response is None else self.response.thinking

    @property
    def answer(self) -> str:
        """What was said, as far as it is known."""
        return "".join(self._answer) if self.response is None else self.response.answer

    @property
    def sources(self) -> list[str]:
        """Where the results of tools came from, each once."""
        recorded = () if self.response is None else self.response.tool_calls
        return list(dict.fromkeys((*self.calls.sources, *(source for call in recorded for source in call.sources))))

    def require(self, query: str, user_id: str | None) -> None:
        """Raises `QueryIdTaken` if this view is of another text, or another user's."""
        if self._expected is not None and (query, user_id) != (self._expected, self.user_id):
            raise QueryIdTaken(self.query_id)

    def has_recalled(self, engram_id: str) -> bool:
        """Whether a tool's result, or what the model was told unasked, is made of that engram."""
        is_told = self.context is not None and engram_id in self.context.engram_ids
        return is_told or RECALLED + engram_id in self.sources

    def lacks(self, judgements: Collection[str]) -> bool:
        """Whether the query has an answer that is judged, and some of these judgements of it may yet come."""
        response = self.response
        is_judged = response is not None and response.status == "answered" and not response.incognito
        return is_judged and not self.judgements.settled.issuperset(judgements)

    # The fold

    def receive(self, message: Message | None, envelope: Envelope, t: float | None = None) -> list[News] | None:
        """Take in one message, None for one whose payload was removed; with `t`, seconds since the query was asked, it
        is put on the log. Returns the events that it makes; None if it changes nothing."""
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

    def fail(self, error: LocalError) -> list[News] | None:
        """No answer will come. As `receive`."""
        if self.ended:
            return None
        self.failure = error
        return [News("error", to_json({"query_id": self.query_id, "error": _as_error(error)}))]

    def note(self, subject: str, t: float) -> None:
        """Put a subject on the log."""
        if self.log and self.log[-1].subject == subject:
            self.log[-1].count += 1
        elif len(self.log) < KEPT_LOG_LINES:
            self.log.append(LogLine(subject, round(t, 6)))

    def _is_news(self, message: Message, envelope_id: str) -> bool:
        if isinstance(message, Judgement):
            return self.judgements.hear(message, envelope_id)
        if self.ended:
            return False
        if isinstance(message, QueryAccepted):
            return message.attempt > self._attempt
        return not isinstance(message, Attempted) or message.attempt >= self._attempt

    def _begin_attempt(self, message: Message) -> Iterator[News]:
        """A restarted generator or model says what it was saying again, from the last step that was stored."""
        if not isinstance(message, QueryAccepted | Attempted) or message.attempt <= self._attempt:
            return
        said = self._thinking or self._answer
        self._attempt, self._next_index, self._is_complete = message.attempt, 0, False
        self._thinking, self._answer = [], []
        if said:
            yield News(SNAPSHOT, to_json(self.said_so_far()))

    def _fold(self, message: Message, envelope: Envelope) -> Iterable[News]:
        self._reading = message if isinstance(message, GenerationProgress) else None
        match message:
            case ResponseGeneration():
                return self._end(message, envelope)
            case QueryFailed():
                return self.fail(QueryRefused(message.error.kind, message.error.message)) or ()
            case QueryAccepted():
                return (News("accepted", to_json({**message.model_dump(), "session_id": self.session_id})),)
            case GenerationThinking():
                self._hear(message)
            case AgentTransition():
                return [self._advance(change) for change in changes(message)]
            case ToolRequest() | ToolResult():
                self.calls.receive(message, envelope)
            case ContextProvided():
                self.context = message
        return (news_of(message),)

    def _advance(self, change: AgentTransition) -> News:
        self.states.append(change)
        if change.from_state == "IDLE":  # what a later attempt has from an earlier one is not said again
            self._is_complete = self._attempt == 1
        return News("state", change.encode())

    def _hear(self, fragment: GenerationThinking) -> None:
        self._is_complete = self._is_complete and fragment.index == self._next_index
        self._next_index = fragment.index + 1
        texts = self._answer if isinstance(fragment, GenerationToken) else self._thinking
        texts.append(fragment.text)

    def _end(self, response: ResponseGeneration, envelope: Envelope) -> Iterable[News]:
        try:
            self.require(response.query, envelope.user_id)
        except QueryIdTaken as error:
            return self.fail(error) or ()
        self.response, self.answered_at = response, envelope.sent_at
        self.session_id = envelope.session_id or self.session_id
        self._note_answer(response, envelope)
        return (News("response", response.encode()),)

    def _note_answer(self, outcome: QueryFailed | ResponseGeneration, envelope: Envelope) -> bool:
        is_answer = isinstance(outcome, ResponseGeneration) and outcome.status == "answered"
        if is_answer:
            self.answers.setdefault(outcome.respondent_id, envelope.trace())
        return is_answer

    def _receive_query(self, message: QueryReceived, envelope: Envelope) -> list[News] | None:
        try:
            self.require(message.query, envelope.user_id)
        except QueryIdTaken as error:
            return self.fail(error)
        self.query, self.session_id = message.query, session_of(envelope, message.query_id)
        self.user_id = envelope.user_id
        return None

    def _receive_of_another(self, message: Message, envelope: Envelope) -> list[News] | None:
        """Another respondent that has ended without an answer leaves nothing to compare."""
        if not isinstance(message, QueryFailed | ResponseGeneration) or self._note_answer(message, envelope):
            return None
        self.judgements.rule_out(PAIRWISE)
        return []

    def _receive_removed(self, envelope: Envelope) -> list[News] | None:
        if envelope.subject.startswith((ToolRequest.subject, ToolResult.subject)):
            self.calls.receive_removed(envelope)
        elif envelope.subject in (QueryFailed.subject, ResponseGeneration.subject):
            self.is_outcome_removed = True
        return None

    # As JSON

    def as_json(self) -> Json:
        """The state of the query: its answer, why there is none, or what was said so far."""
        if self.response is not None:
            return self._answer_as_json(self.response)
        known = {"query_id": self.query_id, "session_id": self.session_id, "query": self.query, "status": self.status}
        if self.failure is not None:
            return {**known, "error": _as_error(self.failure)}
        return {**known, **self.said_so_far()} if self.log else known  # on record is only that it was asked

    def as_cancelled(self) -> Json:
        """The answer to a query that was cancelled while it waited in line: an empty one, cancelled like any other."""
        response = ResponseGeneration(
            query_id=self.query_id, status="cancelled", query=self.query or "", answer="",
            error=None if self.failure is None else ErrorInfo.model_validate(_as_error(self.failure)),
        )  # fmt: skip
        return self._answer_as_json(response)

    def said_so_far(self) -> Json:
        """What was thought, said and called; `complete` if all of it was heard. `reading` while the model reads its
        prompt: `done` of `total` tokens."""
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
