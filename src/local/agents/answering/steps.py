"""What a turn has done so far, as it is stored: what the model said, and how its tool calls ended."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError

from local.errors import StoreDamaged
from local.models.chat import ContentDelta, Degraded, Delta, Done, Json, RestartDelta, ThinkingDelta, ToolCall, Usage
from local.protocol.kept_text import KeptText
from local.protocol.message import Data
from local.protocol.messages import ContextGauge, ModelSpan, ToolCallRecord, TurnTotals, UsageInfo

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
    tainted: bool = False  # words of strangers were before the model when it said this

    @property
    def is_empty(self) -> bool:
        """Whether the model said nothing and called nothing."""
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
    """How every call of the model's last message ended, in call order."""

    kind: Literal["tools"] = "tools"
    records: tuple[ToolCallRecord, ...]

    @property
    def tainted(self) -> bool:
        """Whether words of strangers came with it."""
        return any(record.tainted for record in self.records)

    def as_messages(self) -> list[Json]:
        """One tool message for each call, errors included."""
        return [
            {"role": "tool", "tool_name": record.tool, "tool_call_id": record.call_id, "content": told(record)}
            for record in self.records
        ]


class NudgeStep(Data):
    """Something the turn itself tells the model, to get an answer out of it."""

    kind: Literal["nudge"] = "nudge"
    text: str
    tainted: ClassVar[bool] = False

    def as_messages(self) -> list[Json]:
        """A user's message."""
        return [{"role": "user", "content": self.text}]


Step = ModelStep | ToolStep | NudgeStep
_STEP: TypeAdapter[Step] = TypeAdapter(Annotated[Step, Field(discriminator="kind")])


def told(record: ToolCallRecord) -> str:
    """What the model reads of a settled call."""
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
    """A stored step. Raises `StoreDamaged` if it is none."""
    try:
        step = _STEP.validate_json(text)
    except ValidationError as error:
        raise StoreDamaged(f"a stored step cannot be read: {_first_fault(error)}") from None
    return ToolStep(records=tuple(map(_with_taint, step.records))) if isinstance(step, ToolStep) else step


def parse_record(text: str) -> ToolCallRecord:
    """A tool result that was stored by itself. Raises `StoreDamaged` if it is none."""
    try:
        return _with_taint(ToolCallRecord.model_validate_json(text))
    except ValidationError as error:
        raise StoreDamaged(f"a stored tool result cannot be read: {_first_fault(error)}") from None


def _with_taint(record: ToolCallRecord) -> ToolCallRecord:
    """A record as it says, or tainted if it was stored before that was noted: whom to trust is known no more."""
    return record if "tainted" in record.model_fields_set else record.model_copy(update={"tainted": True})


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    return f"{where}: {first['msg']}"


def usage_of(done: Done, span: ModelSpan | None, gauge: ContextGauge | None) -> UsageInfo:
    """What one call of the model has cost; `span` is when it was, if that is known."""
    tokens = {
        "prompt_tokens": done.usage.prompt_tokens,
        "completion_tokens": done.usage.completion_tokens,
    }
    steps = () if span is None else (span.model_copy(update={**tokens, "model": done.model}),)
    return UsageInfo(**tokens, durations=dict(done.usage.durations), context=gauge, steps=steps)


def total_usage(
    usages: Sequence[UsageInfo],
    cut_off: ModelSpan | None,
    gauge: ContextGauge | None,
    totals: TurnTotals | None = None,
) -> UsageInfo:
    """What a turn has cost: its calls together, and each by itself, one that was cut off among them. `totals` are what
    it has used of its limits."""
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
class Spoken:
    """One message of the model while it is being said: what has been heard of it so far."""

    _content: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    done: Done = field(default_factory=lambda: Done(Usage()))

    @property
    def content(self) -> str:
        """What is for the user."""
        return "".join(self._content)

    @property
    def thinking(self) -> str:
        """What the model thought before and in between."""
        return "".join(self._thinking)

    @property
    def is_cut_off(self) -> bool:
        """Whether the model was stopped by its limit of tokens."""
        return self.done.reason.lower() in _LIMIT_REACHED

    def hear(self, delta: Delta) -> None:
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
        """What stood where the content belongs were these calls."""
        self._content, self.calls = [], list(calls)
        self.notes += [f"the call of {call.name} {AS_TEXT}" for call in calls]


class CallTimer:
    """When the model's calls of a turn began, were first heard of, and ended; one at a time. `clock` gives seconds
    since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._started: float | None = None
        self._first_token: float | None = None

    def begin(self) -> None:
        """The model is asked."""
        self._started, self._first_token = self._clock(), None

    def hear(self, delta: Delta) -> None:
        """Something came; the first of what is said counts, from the beginning if that begins again."""
        if self._first_token is None and isinstance(delta, _SAID):
            self._first_token = self._clock()
        elif isinstance(delta, RestartDelta):
            self._first_token = None

    def end(self) -> ModelSpan | None:
        """The call has ended, or is cut off; None if there is none."""
        if self._started is None:
            return None
        span = ModelSpan(started=self._started, first_token=self._first_token, ended=self._clock())
        self._started = None
        return span
