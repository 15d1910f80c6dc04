"""Messages about approval: calls that need it, people's decisions, and the grants of conversations."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import AliasChoices, Field

from local.bus.message import Data, Delivery, ErrorInfo, Message, RespondentMessage
from local.bus.messages import Grant, PlanMode
from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN, UNDECLARED_CATEGORY, Category, Mode, Safety
from local.core.files import OWNER

Decision = Literal["allow", "allow_session", "deny"]
"""What a person says: once, for the whole conversation, or no."""

PermissionVerb = Literal["list", "decide", "remembered", "forget"]
SILENCE = "silence"  # in `by` of a decision for which the time ran out
QUESTIONS_OF_THE_MODEL = frozenset({CLARIFICATION, PROPOSE_PLAN})  # asked independently of the policy about calls


class PermissionDecision(StrEnum):
    """The decision about a tool call: allow, ask a person, or deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class GrantRequest(RespondentMessage):
    """The generator's request before a call that needs approval, answered when the decision falls. `mode` is that of
    the query, if it names one. In a tainted conversation, `sources` names where the untrusted content came from;
    `refusal` is why the rule of taint would not make the call, `must_ask` why a hook requires a person's decision,
    `do_not_ask` why the call is denied instead of asking a person. For a call of an agent of the swarm, `agent` is its
    name, `root_query_id` and `root_session_id` the user's query that started it; for a program's own call, `client` is
    its name.
    """

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
    """The gatekeeper's answer to that: allow, with the grant, or deny, and `why`. `by` names who decided, if it was not
    the policy. To a question of the model `answer` is the user's reply; for an approved plan `mode` is how the rest of
    the turn runs.
    """

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
    """The gatekeeper's request to a person, about a call or for the model: asked once, and open until
    `approval.decision` or `expires_at`, in seconds since 1970. `why` is a sentence, `sources` names where untrusted
    content came from. For an agent, `agent` is its name, and the request is shown in the conversation
    `root_session_id`, whose query `root_query_id` started the agent. For a program's own call, without a model of ours
    in a conversation, `client` is its name. `user_id` is the user whose conversation asks; with `owner_decides` only
    the owner can allow it.
    """

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
    user_id: str = OWNER
    owner_decides: bool = False
    asked_at: float
    expires_at: float


class ApprovalDecision(RespondentMessage):
    """The final decision about an approval: `by` whom, "silence" if the time ran out. `answer` is the user's reply,
    `mode` how the rest of a turn with an approved plan runs.
    """

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
    """A user's grant for a whole conversation: for the call with these arguments, or of a tool for files all on that
    path.
    """

    grant_id: int = Field(validation_alias=AliasChoices("grant_id", "leave_id"))
    session_id: str
    tool: str
    args: dict[str, Any]
    decided_at: float


class PermissionRequest(Message):
    """A frontend's request: pending approvals (list), a decision (decide: `call_id`, `decision`, `by`, `answer`,
    `mode`), the grants (remembered), or to revoke one (forget: `grant_id`). With `of_user` only those of that user.
    """

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
