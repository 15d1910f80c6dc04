"""Messages about approval: calls that need it, people who decide, and what is remembered of their decisions."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import AliasChoices, Field

from local.bus.message import Data, Delivery, ErrorInfo, Message, RespondentMessage
from local.bus.messages import Grant, PlanMode
from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN, UNDECLARED_CATEGORY, Category, Mode, Safety

Decision = Literal["allow", "allow_session", "deny"]
"""What a person says: once, for the whole conversation, or no."""

PermissionVerb = Literal["list", "decide", "remembered", "forget"]
SILENCE = "silence"  # in `by` of a decision that nobody took in time
QUESTIONS_OF_THE_MODEL = frozenset({CLARIFICATION, PROPOSE_PLAN})  # asked whatever the policy says of calls


class PermissionDecision(StrEnum):
    """What becomes of a tool call: it is made, a person is asked about it, or it is not made."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class GrantRequest(RespondentMessage):
    """The generator's request before a call that needs approval, answered when the decision falls. `mode` is that of
    the query, if it names one. In a tainted conversation, `sources` names where the untrusted content came from;
    `refusal` is why the rule of taint would not make the call, `must_ask` why a hook wants a person to decide,
    `do_not_ask` why the call is denied where a person would be asked. Where an agent of the swarm calls, `agent` is its
    name, `root_query_id` and `root_session_id` the user's query from which that came; where a program calls by itself,
    `client` is what it calls itself."""

    subject = "grant.request"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "gatekeeper"
    call_id: str
    tool: str
    args: dict[str, Any]
    mode: Mode | None = None
    tainted: bool = False
    sources: tuple[str, ...] = ()
    refusal: str = ""
    must_ask: str = ""
    do_not_ask: str = ""
    agent: str = ""
    root_query_id: str = ""
    root_session_id: str = ""
    client: str = ""


class GrantResult(RespondentMessage):
    """The gatekeeper's answer to that: allow, with the grant, or deny, and `why`. `by` says whose decision it was,
    where it was not the policy's. To a question of the model `answer` is what its user said; of a plan that is
    approved `mode` is how the rest of the turn runs."""

    subject = "grant.result"
    delivery = Delivery.EPHEMERAL
    call_id: str
    decision: PermissionDecision
    grant: Grant | None = None
    why: str = ""
    by: str = ""
    answer: str | None = None
    mode: PlanMode | None = None


class ApprovalRequest(RespondentMessage):
    """The gatekeeper's question to a person, about a call or for the model: asked once, and open until
    `approval.decision` or `expires_at`, in seconds since 1970. `why` is a sentence, `sources` names where untrusted
    content came from. Where it is an agent's, `agent` is its name, and it is to be shown in the conversation
    `root_session_id`, from whose query `root_query_id` the agent came. Where a program calls by itself, and no model of
    ours in a conversation, `client` is what it calls itself."""

    subject = "approval.request"
    delivery = Delivery.CONFIRMED
    call_id: str
    session_id: str
    tool: str
    args: dict[str, Any]
    level: Safety
    category: Category = UNDECLARED_CATEGORY
    why: str = ""
    tainted: bool = False
    sources: tuple[str, ...] = ()
    agent: str = ""
    root_query_id: str = ""
    root_session_id: str = ""
    client: str = ""
    asked_at: float
    expires_at: float


class ApprovalDecision(RespondentMessage):
    """The final decision about an approval: by whom, "silence" if by nobody. `answer` is what a user
    said to it, `mode` how the rest of a turn runs whose plan is approved."""

    subject = "approval.decision"
    delivery = Delivery.CONFIRMED
    call_id: str
    session_id: str
    tool: str
    decision: Decision
    by: str
    answer: str | None = None
    mode: PlanMode | None = None
    decided_at: float


class RememberedGrant(Data):
    """What a user has allowed for a whole conversation: the call with these arguments, or of a tool for files all on
    that path."""

    grant_id: int = Field(validation_alias=AliasChoices("grant_id", "leave_id"))
    session_id: str
    tool: str
    args: dict[str, Any]
    decided_at: float


class PermissionRequest(Message):
    """A frontend's request: what waits for a decision (list), a decision (decide: `call_id`, `decision`, `by`,
    `answer`, `mode`), what is remembered (remembered), or to take that back (forget: `grant_id`). With `of_user` only
    what is that user's is there."""

    subject = "permission.request."
    family_key = "verb"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "gatekeeper"
    verb: PermissionVerb
    of_user: str | None = None
    call_id: str = ""
    decision: Decision = "deny"
    by: str = ""
    answer: str | None = None
    mode: PlanMode | None = None
    grant_id: int = Field(0, validation_alias=AliasChoices("grant_id", "leave_id"))


class PermissionResult(Message):
    """The gatekeeper's answer to that."""

    subject = "permission.result."
    family_key = "verb"
    delivery = Delivery.EPHEMERAL
    verb: PermissionVerb
    waiting: tuple[ApprovalRequest, ...] = ()
    remembered: tuple[RememberedGrant, ...] = ()
    error: ErrorInfo | None = None
