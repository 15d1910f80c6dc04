"""What is said about leave: calls that ask for it, people who give it, and what is remembered of that."""

from __future__ import annotations

from typing import Any, Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message, RespondentMessage
from local.bus.messages import Grant, PlanMode
from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN, UNDECLARED_CATEGORY, Category, Mode, Safety

Decision = Literal["allow", "allow_session", "deny"]
PermissionVerb = Literal["list", "decide", "remembered", "forget"]
SILENCE = "silence"  # in `by` of a decision that nobody took in time
QUESTIONS_OF_THE_MODEL = frozenset({CLARIFICATION, PROPOSE_PLAN})  # asked whatever the policy says of calls


class GrantRequest(RespondentMessage):
    """The generator, before a call that needs leave; again to hear what became of a question. `mode` is that of the
    query, if it names one. In a tainted conversation, `sources` are whose words are before the model; `refusal` is why
    the rule of taint would not make the call, `must_ask` why a hook wants a person to decide, `do_not_ask` why
    the call is denied where a person would be asked. Where an agent of the swarm calls, `agent` is its name,
    `root_query_id` and `root_session_id` the user's query from which that came; where a program calls by itself,
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
    """The gatekeeper's answer to that: granted, with the grant; denied, and `why`; or asked, and until when an answer
    is waited for. `by` says whose decision it was, where it was not the policy's. To a question of the model `answer`
    is what its user said; of a plan that is approved `mode` is how the rest of the turn runs."""

    subject = "grant.result"
    delivery = Delivery.EPHEMERAL
    call_id: str
    verdict: Literal["granted", "denied", "asked"]
    grant: Grant | None = None
    why: str = ""
    by: str = ""
    answer: str | None = None
    mode: PlanMode | None = None
    expires_at: float | None = None


class ApprovalRequest(RespondentMessage):
    """The gatekeeper, when somebody has to decide about a call, or to answer the model: asked once, and open until
    `approval.decision` or `expires_at`, in seconds since 1970. `why` is a sentence, `sources` whose words are before
    the model. Where it is an agent's, `agent` is its name, and it is to be shown in the conversation `root_session_id`,
    from whose query `root_query_id` the agent came. Where a program calls by itself, and no model of ours in a
    conversation, `client` is what it calls itself."""

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
    """The gatekeeper, when an approval is decided, for good: by whom, "silence" if by nobody. `answer` is what a user
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

    leave_id: int
    session_id: str
    tool: str
    args: dict[str, Any]
    decided_at: float


class PermissionRequest(Message):
    """A door that shows what waits for a decision (list), brings one (decide: `call_id`, `decision`, `by`, `answer`,
    `mode`), shows what is remembered (remembered) or takes it back (forget: `leave_id`). With `of_user` only what is
    that user's is there."""

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
    leave_id: int = 0


class PermissionResult(Message):
    """The gatekeeper's answer to that."""

    subject = "permission.result."
    family_key = "verb"
    delivery = Delivery.EPHEMERAL
    verb: PermissionVerb
    waiting: tuple[ApprovalRequest, ...] = ()
    remembered: tuple[RememberedGrant, ...] = ()
    error: ErrorInfo | None = None
