"""The stored steps of a turn: the model's messages, and the results of its tool calls."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from local.bus.message import Data, KeptText
from local.bus.messages import (
    AnswerOptions,
    ContextGauge,
    ModelSpan,
    RecalledExchange,
    ToolCallRecord,
    TurnTotals,
    UsageInfo,
)
from local.bus.vocabulary import USER
from local.core.errors import StoreDamaged
from local.core.templates import has_template_marks
from local.generator.context import Attached, PromptParts, Summary
from local.models.chat import ContentDelta, Degraded, Delta, Done, Json, RestartDelta, ThinkingDelta, ToolCall, Usage
from local.runtime.machine import Table
from local.swarm.messages import AgentTask

READ_RESULT = "read_result"  # the tool that a turn is itself
CUT_OFF = "the model reached its limit of tokens and was cut off (max_answer_tokens in generator.yaml)"
AS_TEXT = "came as text"
_SAID = (ThinkingDelta, ContentDelta, ToolCall)
_LIMIT_REACHED = ("length", "max_tokens")


def signature(tool: str, args: Mapping[str, Any]) -> str:
    """Equal for calls that ask for the same."""
    return f"{tool} {json.dumps(args, sort_keys=True)}"


class PlannedCall(Data):
    """A tool call as the model asked for it. `call_id` is `query_id:step:index`."""

    call_id: str
    tool: str
    args: dict[str, Any]

    @property
    def signature(self) -> str:
        """Equal for calls that ask for the same."""
        return signature(self.tool, self.args)

    def with_args(self, args: Mapping[str, Any]) -> PlannedCall:
        """The call with other arguments."""
        return self if args == self.args else self.model_copy(update={"args": dict(args)})


class ModelStep(Data):
    """One message of the model."""

    kind: Literal["model"] = "model"
    content: str
    thinking: str = ""
    calls: tuple[PlannedCall, ...] = ()
    model: str = ""
    usage: UsageInfo = UsageInfo()
    degraded: tuple[str, ...] = ()
    cut_off: bool = False
    tainted: bool = False  # untrusted content was in front of the model

    @property
    def is_empty(self) -> bool:
        """Whether the model returned neither content nor calls."""
        return not self.calls and not self.content.strip()

    def as_messages(self) -> list[Json]:
        """The message as the model gets it back inside the tool loop: thinking included, calls with their ids."""
        if self.is_empty:
            return []
        message: Json = {"role": "assistant", "content": self.content}
        if self.thinking:
            message["thinking"] = self.thinking
        if self.calls:
            message["tool_calls"] = [
                {"id": call.call_id, "function": {"name": call.tool, "arguments": call.args}} for call in self.calls
            ]
        return [message]


class ToolStep(Data):
    """The results of a round of tool calls: how every call of the model's last message ended, in call order."""

    kind: Literal["tools"] = "tools"
    records: tuple[ToolCallRecord, ...]

    @property
    def tainted(self) -> bool:
        """Whether it contains untrusted content."""
        return any(record.tainted for record in self.records)

    def as_messages(self) -> list[Json]:
        """Return one tool message for each call, errors included."""
        return [
            {"role": "tool", "tool_name": record.tool, "tool_call_id": record.call_id, "content": result_text(record)}
            for record in self.records
        ]


class NudgeStep(Data):
    """A step in which the turn itself prompts the model for an answer."""

    kind: Literal["nudge"] = "nudge"
    text: str
    tainted: ClassVar[bool] = False

    def as_messages(self) -> list[Json]:
        """A user's message."""
        return [{"role": "user", "content": self.text}]


Step = ModelStep | ToolStep | NudgeStep
_STEP: TypeAdapter[Step] = TypeAdapter(Annotated[Step, Field(discriminator="kind")])


def result_text(record: ToolCallRecord) -> str:
    """Return the result of an ended call, for the model."""
    if record.error is not None:
        return f"Error ({record.error.kind}): {record.error.message}"
    if record.whole is not None:
        return f"{_cut_note(record.call_id, record.whole)}\n\n{record.result}"
    return record.result or "(the tool returned an empty text)"


def short_id(call_id: str) -> str:
    """A call's id within its turn, which a model can copy: step and index."""
    return ":".join(call_id.rsplit(":", 2)[-2:])


def _cut_note(call_id: str, whole: KeptText) -> str:
    begins = f"with call_id={short_id(call_id)} and start={whole.get('shown', 0)}"
    return f"[Cut off: it has {whole['characters']} characters. To read on, call {READ_RESULT} {begins}.]"


def parse_step(text: str) -> Step:
    """Return a stored step. Raises `StoreDamaged` if the text is invalid."""
    try:
        step = _STEP.validate_json(text)
    except ValidationError as error:
        raise StoreDamaged(f"a stored step cannot be read: {_first_fault(error)}") from None
    return ToolStep(records=tuple(map(_with_taint, step.records))) if isinstance(step, ToolStep) else step


def parse_record(text: str) -> ToolCallRecord:
    """Return a tool result that was stored singly. Raises `StoreDamaged` if the text is invalid."""
    try:
        return _with_taint(ToolCallRecord.model_validate_json(text))
    except ValidationError as error:
        raise StoreDamaged(f"a stored tool result cannot be read: {_first_fault(error)}") from None


def _with_taint(record: ToolCallRecord) -> ToolCallRecord:
    """Return a record with its taint; one from before taint was stored counts as tainted."""
    return record if "tainted" in record.model_fields_set else record.model_copy(update={"tainted": True})


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    return f"{where}: {first['msg']}"


def usage_of(done: Done, span: ModelSpan | None, gauge: ContextGauge | None) -> UsageInfo:
    """Return the usage of one call of the model; `span` is its time, if known."""
    tokens = {
        "prompt_tokens": done.usage.prompt_tokens,
        "completion_tokens": done.usage.completion_tokens,
    }
    where = {"model": done.model, **({"server": done.usage.server} if done.usage.server else {})}
    steps = () if span is None else (span.model_copy(update={**tokens, **where}),)
    return UsageInfo(**tokens, durations=dict(done.usage.durations), context=gauge, steps=steps)


def total_usage(
    usages: Sequence[UsageInfo],
    cut_off: ModelSpan | None,
    gauge: ContextGauge | None,
    totals: TurnTotals | None = None,
) -> UsageInfo:
    """Return the usage of a turn: its calls together, and each by itself, including one that was cut off. `totals` are
    the used shares of its limits.
    """
    durations: Counter[str] = Counter()
    for usage in usages:
        durations.update(usage.durations)
    return UsageInfo(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        durations=dict(durations),
        context=gauge,
        totals=totals if totals and totals.steps else None,
        steps=(*(span for usage in usages for span in usage.steps), *([cut_off] if cut_off is not None else [])),
    )


def signed_as(name: str, usage: UsageInfo) -> UsageInfo:
    """The usage with another name for the model of its calls."""
    named = (span.model_copy(update={"model": name}) if span.model else span for span in usage.steps)
    return usage.model_copy(update={"steps": tuple(named)})


@dataclass(slots=True)
class PartialMessage:
    """One message of the model while it is generated."""

    _content: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    done: Done = field(default_factory=lambda: Done(Usage()))

    @property
    def content(self) -> str:
        """Return the text for the user."""
        return "".join(self._content)

    @property
    def thinking(self) -> str:
        """Return the model's thinking before and in between."""
        return "".join(self._thinking)

    @property
    def is_cut_off(self) -> bool:
        """Whether the model was stopped by its limit of tokens."""
        return self.done.reason.lower() in _LIMIT_REACHED

    def receive(self, delta: Delta) -> None:
        """Take in one more delta."""
        match delta:
            case ContentDelta(text):
                self._content.append(text)
            case ThinkingDelta(text):
                self._thinking.append(text)
            case ToolCall():
                self.calls.append(delta)
            case RestartDelta(note):
                self._content, self._thinking, self.calls = [], [], []
                self.notes.append(note)
            case Degraded(note):
                self.notes.append(note)
            case Done():
                self.done = delta
                if self.is_cut_off:
                    self.notes.append(CUT_OFF)

    def was_calls(self, calls: Sequence[ToolCall]) -> None:
        """Replace the content by these calls, which it contained as text."""
        self._content, self.calls = [], list(calls)
        self.notes += [f"the call of {call.name} {AS_TEXT}" for call in calls]


class CallTimer:
    """A timer of the model calls of a turn: when each began, returned its first token, and ended; one at a time.
    `clock` returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._started: float | None = None
        self._first_token: float | None = None
        self._thinks_since: float | None = None
        self._thought = 0.0

    def begin(self) -> None:
        """The model is asked."""
        self._started, self._first_token = self._clock(), None
        self._thinks_since, self._thought = None, 0.0

    def receive(self, delta: Delta) -> None:
        """Note a delta; the first one with text counts, again after a restart."""
        if isinstance(delta, RestartDelta):
            self._first_token, self._thinks_since, self._thought = None, None, 0.0
        elif isinstance(delta, _SAID):
            thinks = isinstance(delta, ThinkingDelta)
            if self._first_token is None or thinks != (self._thinks_since is not None):
                now = self._clock()
                self._first_token = now if self._first_token is None else self._first_token
                self._think_until(now)
                self._thinks_since = now if thinks else None

    def end(self) -> ModelSpan | None:
        """Return the span of the call, which has ended or is cut off; None if there is none."""
        if self._started is None:
            return None
        ended = self._clock()
        self._think_until(ended)
        span = ModelSpan(
            started=self._started, first_token=self._first_token, ended=ended, thinking=round(self._thought, 3)
        )
        self._started = None
        return span

    def _think_until(self, now: float) -> None:
        if self._thinks_since is not None:
            self._thought += now - self._thinks_since
            self._thinks_since = None


# The limits of one turn and their used shares: the only place that decides when no more tools are called.

OUTPUT_BYTES = 2_000_000
TOO_MANY_CALLS = "too_many_calls"  # the kind of error of calls that were not made


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of one turn. Steps are rounds of tool calls: `steps` if only reading tools are offered, else
    `acting_steps`. `calls` and `output_bytes`, of results, are for a whole turn, and so are `tokens`, which limit an
    agent's turn.
    """

    steps: int = 5
    acting_steps: int = 20
    calls: int = 50
    output_bytes: int = OUTPUT_BYTES
    tokens: int | None = None  # of an agent's turn

    def of_agent(self, task: AgentTask | None) -> TurnLimits:
        """The limits of a turn that an agent was asked for, which may have less left."""
        if task is None:
            return self
        return replace(self, calls=min(self.calls, task.max_calls), tokens=task.max_tokens)

    def totals(self, steps: Sequence[Step], *, acts: bool) -> TurnTotals:
        """Return the used shares of the limits; `acts`: the turn is offered a tool that does more than read."""
        rounds = [step for step in steps if isinstance(step, ToolStep)]
        records = [record for step in rounds for record in step.records]
        usages = [step.usage for step in steps if isinstance(step, ModelStep)]
        return TurnTotals(
            steps=len(rounds),
            max_steps=self.acting_steps if acts else self.steps,
            calls=sum(record.error is None or record.error.kind != TOO_MANY_CALLS for record in records),
            max_calls=self.calls,
            output_bytes=sum(len(record.result.encode("utf-8", "replace")) for record in records if record.result),
            max_output_bytes=self.output_bytes,
            tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
            max_tokens=self.tokens,
        )


def limit_met(totals: TurnTotals) -> str:
    """Return the limit that ends the calling of tools, as text; empty if none is reached."""
    if totals.steps >= totals.max_steps:
        return f"{totals.max_steps} steps"
    if totals.calls >= totals.max_calls:
        return f"{totals.max_calls} calls of tools"
    if totals.max_tokens is not None and totals.tokens >= totals.max_tokens:
        return f"{totals.max_tokens} tokens"
    return f"{totals.max_output_bytes} bytes of tools' output" if totals.output_bytes >= totals.max_output_bytes else ""


def notes_of(totals: TurnTotals) -> tuple[str, ...]:
    """Return the notes on an answer that a limit has forced."""
    if not (totals.steps and (met := limit_met(totals))):
        return ()
    return (f"it answered with what it had, as no more than {met} are possible for one question",)


# The inputs of a turn.

NOT_TOLD = "the memory did not say in time what it knows of the user: this answer was made without it"


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The inputs of a turn. `prelude` are the messages before the query: system prompt and history, except the
    exchanges in the `summary`.
    """

    query_id: str
    respondent_id: str
    query: str
    prelude: tuple[Json, ...]
    think: bool
    limits: TurnLimits
    summary: Summary = Summary()  # noqa: RUF009 - frozen
    attached: Attached = Attached()  # noqa: RUF009 - frozen
    beginning: PromptParts | None = None  # of its prompts; by default made of the prelude, the summary and the files
    recalled: tuple[RecalledExchange, ...] = ()  # exchanges of earlier conversations
    prompt: str = "default"  # the name of its instructions
    profile: str = ""  # its name, if it was asked with one
    incognito: bool = False
    in_history: bool = True
    options: AnswerOptions | None = None
    continued: tuple[Json, ...] = ()  # the messages after the query: calls of the asker's functions, their results
    tainted: bool = False  # by the earlier conversation, or by a file
    origin: str = USER
    own_words: bool = True  # false if the query itself may contain untrusted content
    private: tuple[str, ...] = ()  # the user's private texts in the prompt that are not from this conversation
    notes: tuple[str, ...] = ()  # about missing parts of the prompt
    task: AgentTask | None = None  # where a model has asked it of an agent, and no user
    model: str = ""  # the one that answers
    today: str = ""  # the date, in words that are no secret
    guided: bool = False  # whether the last line of its prompts tells the model what to do

    @property
    def spoken(self) -> tuple[str, ...]:
        """Return the user's words in the query and before it. A task and those before it are words of models."""
        if self.task is not None:
            return (self.task.asked,)
        if not self.in_history and not (self.options is not None and self.options.remember):
            return (self.query,)  # earlier messages that a client sends are not proven to be the user's
        before = [str(each.get("content") or "") for each in self.prelude if each.get("role") == "user"]
        if not self.in_history:
            before = [text for text in before if not has_template_marks(text)]
        return (*before, self.query)

    @property
    def whose(self) -> dict[str, str]:
        """Return how an agent is named in a request for approval."""
        task = self.task
        if task is None:
            return {}
        return {"agent": task.name, "root_query_id": task.root_query_id, "root_session_id": task.root_session_id}


# The states of a turn, the actions on it, and which leads where.


class TurnState(StrEnum):
    """The state of a turn."""

    IDLE = "IDLE"
    RECEIVING = "RECEIVING"
    GENERATING = "GENERATING"
    DISPATCHING_TOOL = "DISPATCHING_TOOL"
    WAITING_FOR_APPROVAL = "WAITING_FOR_APPROVAL"
    WAITING_FOR_TOOL = "WAITING_FOR_TOOL"
    PUBLISHING = "PUBLISHING"


class TurnAction(StrEnum):
    """An event of a turn."""

    RECEIVE_QUERY = "RECEIVE_QUERY"
    START_GENERATION = "START_GENERATION"
    DISPATCH_TOOL = "DISPATCH_TOOL"
    REQUEST_APPROVAL = "REQUEST_APPROVAL"
    APPROVAL_DECIDED = "APPROVAL_DECIDED"
    REQUEST_SENT = "REQUEST_SENT"
    TOOL_RESULT = "TOOL_RESULT"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    FINISH = "FINISH"
    PUBLISHED = "PUBLISHED"
    CANCEL = "CANCEL"
    FAIL = "FAIL"


Status = Literal["answered", "cancelled", "failed"]


class NextStep(Enum):
    """The next action that a turn wants."""

    CALL_MODEL = auto()
    CALL_TOOLS = auto()
    PUBLISH = auto()


CALLING = frozenset({TurnState.DISPATCHING_TOOL, TurnState.WAITING_FOR_APPROVAL, TurnState.WAITING_FOR_TOOL})

TABLE: Final[Table[TurnState, TurnAction]] = {
    TurnState.IDLE: {
        TurnAction.RECEIVE_QUERY: TurnState.RECEIVING,
    },
    TurnState.RECEIVING: {
        TurnAction.START_GENERATION: TurnState.GENERATING,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.GENERATING: {
        TurnAction.DISPATCH_TOOL: TurnState.DISPATCHING_TOOL,
        TurnAction.FINISH: TurnState.PUBLISHING,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.DISPATCHING_TOOL: {
        TurnAction.REQUEST_APPROVAL: TurnState.WAITING_FOR_APPROVAL,
        TurnAction.REQUEST_SENT: TurnState.WAITING_FOR_TOOL,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.WAITING_FOR_APPROVAL: {
        TurnAction.APPROVAL_DECIDED: TurnState.DISPATCHING_TOOL,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.WAITING_FOR_TOOL: {
        TurnAction.REQUEST_APPROVAL: TurnState.WAITING_FOR_APPROVAL,
        TurnAction.TOOL_RESULT: TurnState.GENERATING,
        TurnAction.TOOL_TIMEOUT: TurnState.GENERATING,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.PUBLISHING: {
        TurnAction.PUBLISHED: TurnState.IDLE,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
}
