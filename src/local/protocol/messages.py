"""Everything that is said on the bus: one frozen class for each message, with who sends it and when."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from local.protocol.agent_messages import AgentTask as AgentTask
from local.protocol.answer_options import AnswerOptions as AnswerOptions
from local.protocol.answer_options import ClientCall as ClientCall
from local.protocol.conversation_messages import ContextProvided as ContextProvided
from local.protocol.conversation_messages import ConversationRequest as ConversationRequest
from local.protocol.conversation_messages import ConversationResult as ConversationResult
from local.protocol.conversation_messages import SessionBranched as SessionBranched
from local.protocol.conversation_messages import SessionChanged as SessionChanged
from local.protocol.conversation_messages import SessionDeleted as SessionDeleted
from local.protocol.message import MAIN_RESPONDENT, Data, Delivery
from local.protocol.message import ErrorInfo as ErrorInfo
from local.protocol.message import Message as Message
from local.protocol.message import RespondentMessage as RespondentMessage
from local.protocol.query_origin import USER
from local.protocol.tool_messages import ToolCallRecord as ToolCallRecord
from local.protocol.tool_messages import ToolRequest as ToolRequest
from local.protocol.tool_messages import ToolResult as ToolResult
from local.protocol.tool_messages import ToolSchema as ToolSchema
from local.protocol.tool_messages import ToolSchemaRequest as ToolSchemaRequest


class QueryReceived(Message):
    """A door, when somebody asks, or the swarm, when a model has asked an agent (`task`). `history` replaces the
    session's own history and makes the turn leave none; `continued` is what has followed the question there: calls of
    the asker's functions, and their results. `origin` is who is behind it; `tainted` that its words are not the
    user's own."""

    subject = "query.received"
    delivery = Delivery.CONFIRMED
    query_id: str
    query: str
    attachments: tuple[str, ...] = ()
    incognito: bool = False  # to leave nothing behind once its session has ended
    history: tuple[dict[str, Any], ...] | None = None
    continued: tuple[dict[str, Any], ...] = ()
    options: AnswerOptions | None = None
    origin: str = USER
    tainted: bool = False
    session_id: str | None = None  # counts where the envelope names none
    task: AgentTask | None = None


class QueryAccepted(RespondentMessage):
    """The generator, as soon as the journal has given it the query; again for each repeat of a running query."""

    subject = "query.accepted"
    delivery = Delivery.CONFIRMED
    hurried = False
    attempt: int = 1


class QueryFailed(RespondentMessage):
    """The generator, when a query ends without becoming a turn: refused, or cancelled while it waited in line."""

    subject = "query.failed"
    delivery = Delivery.CONFIRMED
    attempt: int = 1
    error: ErrorInfo


class QueryCancel(Message):
    """A door, when the user wants an answer stopped."""

    subject = "query.cancel"
    delivery = Delivery.CONFIRMED
    query_id: str


class GenerationThinking(RespondentMessage):
    """The generator, while the model thinks: one fragment, `index` from 0 within an attempt."""

    subject = "generation.thinking"
    delivery = Delivery.EPHEMERAL
    attempt: int = 1
    index: int
    text: str


class GenerationToken(GenerationThinking):
    """The generator, while the model speaks: one fragment of the answer, counted together with the thinking."""

    subject = "generation.token"


class GenerationWaiting(RespondentMessage):
    """The generator, when no model server answers for now: it waits until one does; `reason` is a sentence. What was
    said in an earlier attempt does not count any more."""

    subject = "generation.waiting"
    delivery = Delivery.EPHEMERAL
    attempt: int = 1
    reason: str


class GenerationProgress(RespondentMessage):
    """The generator, while the model reads its prompt and before it says anything: `done` of `total` tokens are read.
    Only where the model's server tells it, and a few times a second at most."""

    subject = "generation.progress"
    delivery = Delivery.EPHEMERAL
    attempt: int = 1
    done: int
    total: int


class ContextGauge(Data):
    """How full a model's window is: tokens of the prompt, of the whole window, and by part, all estimated."""

    used: int
    limit: int
    parts: dict[str, int]


class ModelSpan(Data):
    """One call of a model: when it was asked, first heard of and done, in seconds since 1970, and its tokens. Without
    `model` it was cut off."""

    started: float
    first_token: float | None = None
    ended: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""


class TurnTotals(Data):
    """What a turn has used of each of its limits: rounds of tool calls, calls, bytes that tools have told, and
    tokens of its model."""

    steps: int
    max_steps: int
    calls: int
    max_calls: int
    output_bytes: int
    max_output_bytes: int
    tokens: int = 0
    max_tokens: int | None = None  # of an agent's turn alone


class UsageInfo(Data):
    """What a turn cost: tokens of all calls, seconds by the server's own names, the last prompt's `context`, each call
    by itself, and the `totals` against the turn's limits where tools were called."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    durations: dict[str, float] = Field(default_factory=dict)
    context: ContextGauge | None = None
    steps: tuple[ModelSpan, ...] = ()
    totals: TurnTotals | None = None


class ResponseGeneration(RespondentMessage):
    """The generator, when a turn ends: the answer and everything that led to it."""

    subject = "response.generation"
    delivery = Delivery.CONFIRMED
    status: Literal["answered", "cancelled", "failed"]
    query: str
    answer: str
    cut_off: bool = False  # by the limit of tokens
    thinking: str = ""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    client_calls: tuple[ClientCall, ...] = ()  # of the asker's own functions: it goes on with their results
    model: str = ""
    prompt: str = "default"  # the name of the instructions that the model was given
    profile: str = ""  # the name of the one that it was asked with
    incognito: bool = False
    in_history: bool = True  # false where a client brought the history itself
    remember: bool = False  # although a client keeps the history: it wants the exchange remembered
    usage: UsageInfo = UsageInfo()
    degraded: tuple[str, ...] = ()
    tainted: bool = False  # text of strangers was in its steps or history; see `brings_taint`
    origin: str = USER  # of the query
    error: ErrorInfo | None = None
    session_id: str | None = None
    generator_id: str = ""  # the name of the agent: `agent_id` in generator.yaml
    agent: str = ""  # of the swarm, that was asked and no user's query

    @property
    def is_memorable(self) -> bool:
        """Whether the answer is to be remembered: an answer, in a conversation of which something may stay."""
        is_answer = self.status == "answered" and not self.client_calls
        return is_answer and not self.incognito and (self.in_history or self.remember)

    @property
    def brings_taint(self) -> bool:
        """Whether the answer is `tainted`; one from before that was noted is, if tools were called."""
        return self.tainted if "tainted" in self.model_fields_set else bool(self.tool_calls)


class AnswerDialog(RespondentMessage):
    """The generator, after an answer: the exchange alone, for those who keep histories."""

    subject = "answer.dialog"
    query: str
    answer: str
    session_id: str | None = None


class AgentTransition(Message):
    """Every machine, when its state changes; with those changes that followed at once. Travels with `from` and `to`.
    `phase` is what a turn is at that may do more than read: researching, editing, verifying or completing."""

    subject = "agent.transition"
    agent: str
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    from_state: str = Field(alias="from")
    action: str
    to_state: str = Field(alias="to")
    then: tuple[dict[str, str], ...] = ()  # action and to
    phase: str = ""


class ChildStatus(Data):
    """One process as the supervisor sees it. `detail` says how it last died."""

    name: str
    kind: str
    state: str
    pid: int | None = None
    restarts: int = 0
    detail: str = ""


class ContextCompacted(RespondentMessage):
    """The generator, before it asks the model with less than everything: what is left out, and what that leaves."""

    subject = "context.compacted"
    summarised_turns: int
    left_out_turns: int
    masked_results: int
    folded_rounds: int
    tokens_before: int
    gauge: ContextGauge


class ParticipantStatus(Message):
    """Every participant, every five seconds and soon after a change: that it lives, what it does, what it has sent."""

    subject = "participant.status"
    delivery = Delivery.EPHEMERAL
    name: str
    kind: str
    pid: int
    instance: str
    state: Literal["starting", "ready", "stopping"]
    child: str = ""  # what the supervisor calls it; empty for one that was started by hand
    inflight: int = 0
    counters: dict[str, int] = Field(default_factory=dict)
    details: dict[str, str] = Field(default_factory=dict)  # what it works with, such as the model's name
    last_seq: dict[str, int] = Field(default_factory=dict)
    subscriptions: dict[str, str] = Field(default_factory=dict)  # subjects, and their durable consumers' names
    children: tuple[ChildStatus, ...] = ()  # the supervisor's alone


class BusDead(Message):
    """Whoever could not handle a message: which one, and why."""

    subject = "bus.dead"
    participant: str
    envelope_id: str
    dead_subject: str
    error: ErrorInfo
