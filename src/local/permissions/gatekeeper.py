"""The gatekeeper: decides about calls that do more than read, by the owner's policy or by asking a person.

Problem: a call that changes something needs an approval, which may come minutes later, while any process may die and
any message be lost. No person may be asked twice, no approval may serve another call, and no call may be made without
one.

Idea: a request for approval is recorded before it is published. The turn's request is answered when the decision falls,
so that it stays open as long as a person is asked. The bus sends an open request again every few seconds; a gatekeeper
that has just started takes it up from there, and finds the question on record. The approval itself is a grant, signed
with a key that this process alone holds, for one call with exactly these arguments and for two minutes; tools check it.

Invariants: one question for each call id; the first decision counts; a call that differs from the one that was asked
about is denied; a call that cannot be checked is denied.

Rejected: answering "asked" at once and having the turn ask again until there is a decision. It needed a timer, a grace
period and a subscription on the other side, and found a lost decision only after fifteen seconds.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, session_of
from local.bus.message import ErrorInfo, Message
from local.bus.messages import (
    Grant,
    PlanMode,
    QueryCancel,
    SessionDeleted,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
    arguments_digest,
    is_plan,
)
from local.bus.vocabulary import CLARIFICATION, NON_INTERACTIVE, PROPOSE_PLAN, TRUST_FOLDER
from local.core import failpoints
from local.core.database import open_patiently, within_patience
from local.core.errors import BadRequest, LocalError, NotOnRecord
from local.core.files import OWNER
from local.core.trust import TrustRegistry, WorkspaceInstructions, WorkspaceProfiles
from local.memory.messages import MemoryDeleted
from local.permissions.messages import (
    QUESTIONS_OF_THE_MODEL,
    SILENCE,
    ApprovalDecision,
    ApprovalRequest,
    Decision,
    GrantRequest,
    GrantResult,
    PermissionDecision,
    PermissionRequest,
    PermissionResult,
)
from local.permissions.policy import DENIES, GatekeeperConfig, JudgedCall, SafetyRegistry
from local.permissions.store import ApprovalQueue, ApprovalStore, NotWaiting, StoredApproval, key_of
from local.runtime.participant import Kind, Participant, Publications, Resources, on
from local.tools.grants import FOLDER, SigningKey

PATIENCE_SECONDS = 10.0  # of a request for approval while the disk is full

log = logging.getLogger(__name__)

_NAMESPACE = uuid.UUID("5b0a9a3e-6a53-4d6d-9b0a-1c52bb3c6c1f")


class Approvals:
    """The requests of a gatekeeper to people: each is recorded before it is published, asked once and decided once.
    `clock` returns seconds since 1970; `on_decided` receives each decision.
    """

    publishes: ClassVar[Publications] = (ApprovalRequest, ApprovalDecision)

    def __init__(
        self,
        bus: Bus,
        book: ApprovalQueue,
        clock: Callable[[], float],
        on_decided: Callable[[StoredApproval], Coroutine[Any, Any, object]],
    ) -> None:
        self._bus, self._book, self._clock, self._on_decided = bus, book, clock, on_decided
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Publish the open requests of an earlier process, and its unpublished decisions, while the block lasts."""
        for approval in self._book.unpublished():
            self._begin(self._publish_decision(approval))
        for approval, request in self._book.waiting():
            self._put(approval, request)
        try:
            yield
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, request: ApprovalRequest, user_id: str | None) -> StoredApproval:
        """Ask, unless it was asked already; returns the record of the request. While nothing can be written it waits
        for a while, shorter than the turn does. Raises as the store does.
        """
        approval, _ = await within_patience(lambda: self._book.ask(request, user_id), PATIENCE_SECONDS)
        failpoints.reach("gatekeeper.asked")
        if approval.asked_at == request.asked_at:
            self._put(approval, request)
        return approval

    async def decide(
        self, key: str, decision: Decision, by: str, answer: str | None = None, mode: PlanMode | None = None
    ) -> StoredApproval:
        """Store a decision and publish it. Raises `NotWaiting` for any but the first, and as the store does."""
        decided = await self._book.decide(key, decision, by, answer, self._clock(), mode)
        failpoints.reach("gatekeeper.decided")
        self._begin(self._publish_decision(decided))
        self._begin(self._on_decided(decided))
        return decided

    def repeat(self, key: str) -> None:
        """Publish an open question again, for a process that has started since; for all others it is the same."""
        for approval, request in self._book.waiting():
            if approval.key == key:
                self._begin(self._publish(request, approval))

    async def at_present(self, approval: StoredApproval) -> StoredApproval:
        """Return a request's state: denied, if its time has run out."""
        if approval.decision is None and approval.expires_at <= self._clock():
            with suppress(NotWaiting):
                return await self.decide(approval.key, "deny", SILENCE)
        return self._book.get(approval.key) or approval

    def _put(self, approval: StoredApproval, request: ApprovalRequest) -> None:
        """Publish the request, and deny it when its time has run out."""
        self._begin(self._publish(request, approval))
        self._begin(self._expire(approval))

    async def _expire(self, approval: StoredApproval) -> None:
        await asyncio.sleep(max(0.0, approval.expires_at - self._clock()))
        with suppress(NotWaiting):
            await within_patience(lambda: self.decide(approval.key, "deny", SILENCE), math.inf)

    async def _publish_decision(self, decided: StoredApproval) -> None:
        respondent_id, _, call_id = decided.key.partition(" ")
        decision = ApprovalDecision.model_validate({
            "query_id": decided.query_id,
            "respondent_id": respondent_id,
            "call_id": call_id,
            "session_id": decided.session_id,
            "tool": decided.tool,
            "decision": decided.decision,
            "by": decided.decided_by,
            "answer": decided.answer,
            "mode": decided.mode,
            "decided_at": decided.decided_at,
        })  # fmt: skip
        await self._publish(decision, decided)
        await self._book.mark_published(decided.key)

    async def _publish(self, message: Message, of: StoredApproval) -> None:
        """Publish under an id that is always the same, so that a repeated publication has no effect."""
        trace = Trace(of.query_id, None, of.session_id, of.user_id)
        envelope_id = uuid.uuid5(_NAMESPACE, f"{of.key}\n{message.subject}").hex
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=math.inf)

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(_logged(work), name="approval")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except LocalError as error:
        log.error("left for the next start: %s", error)


CONSUMER = "gatekeeper"
AT_ONCE = 64
CANCELLED = "cancelled"  # in `by`
_NO_PLAN = "it is no plan, so nobody was asked"
_TRUST = (
    "Trust it only if you would follow what its files say: in every conversation they then count as yours, apart from"
    " cloned repositories, mails and installed packages in it; `local2 trust --remove` takes that back. Otherwise they"
    " are read as untrusted content: in this conversation fewer addresses are opened, and more calls need approval."
)
_UNREADABLE = "its arguments cannot be read, so nobody was asked"


class GatekeeperService(Participant):
    """The service that decides about calls and signs grants, which tools check themselves: it alone holds the key."""

    name = "gatekeeper"
    kind = Kind.SERVICE
    Config = GatekeeperConfig
    publishes = (Approvals, GrantResult, ToolSchemaRequest)

    def __init__(
        self,
        config: GatekeeperConfig,
        store: ApprovalStore,
        key: Callable[[], SigningKey],
        clock: Callable[[], float] = time.time,
        trust: TrustRegistry | None = None,
        workspace: Path | None = None,
    ) -> None:
        """`key` reads the key, `clock` returns seconds since 1970; without `trust` no person is asked about the
        `workspace`, the only folder whose trust can be requested.
        """
        super().__init__(config)
        self._trust, self._workspace = trust, workspace
        self._settings, self._policy, self._store, self._clock = config, config.policy(), store, clock
        self._read_key, self._book, self._tools = key, ApprovalQueue(store), SafetyRegistry()
        self._unanswered: dict[str, tuple[GrantRequest, Envelope]] = {}  # open requests, by key
        self._approvals: Approvals
        self._key: SigningKey

    @classmethod
    def build(cls, config: GatekeeperConfig, resources: Resources) -> Self:
        """Build it with its own file, and the key in the data directory."""
        store = ApprovalStore(resources.data_dir / "approvals.db")
        trust = TrustRegistry(resources.layers[-1]) if resources.layers else None
        key = partial(SigningKey.of, resources.data_dir / FOLDER)
        return cls(config, store, key, trust=trust, workspace=resources.workspace_folder)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the file, and continue what an earlier process has begun."""
        self._key = await open_patiently(self._read_key)
        self._approvals = Approvals(self.bus, self._book, self._clock, self._answer)
        async with self._store:
            await self._book.load()
            async with self._approvals.going_on():
                yield

    async def announce(self) -> None:
        """Ask which tools there are."""
        await self.bus.publish(ToolSchemaRequest())

    def details(self) -> dict[str, str]:
        """Return the default mode, the denied tools, and the number of open requests."""
        may_bypass = "yes" if self._settings.may_bypass else "no"
        waiting = sum(1 for _ in self._book.waiting())
        denied = ", ".join(self._policy.denied_tools)
        told = {"mode": self._settings.mode, "may_bypass": may_bypass, "waiting": str(waiting)}
        return {**told, "denied": denied} if denied else told

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> None:
        """Register a tool's safety level."""
        if self.may_publish(envelope, ToolResult.subject + schema.tool):
            self._tools.add(schema)

    @on(GrantRequest, concurrency=AT_ONCE)
    async def judge(self, request: GrantRequest, envelope: Envelope) -> GrantResult | None:
        """Decide a call that needs approval. While a person is asked there is no answer."""
        try:
            digest = arguments_digest(request.args)
        except ValueError:
            return _denied(request, _UNREADABLE)
        known = self._book.get(key_of(request.call_id, request.respondent_id))
        if known is not None:
            _, asked_by = self._unanswered.get(known.key, (None, None))
            if asked_by is None or asked_by.id != envelope.id:
                self._approvals.repeat(known.key)
            return await self._settled(known, request, envelope, digest)
        if request.tool == TRUST_FOLDER:
            return await self._put_folder(request, envelope, digest)
        if request.tool in QUESTIONS_OF_THE_MODEL:
            return await self._put(request, envelope, digest)
        return await self._judge_call(request, envelope, digest)

    async def _put(self, request: GrantRequest, envelope: Envelope, digest: str) -> GrantResult | None:
        """Ask the user a question of the model, or about a plan, unless the query is non-interactive."""
        if (request.mode or self._settings.mode) == NON_INTERACTIVE:
            return _denied(request, DENIES[NON_INTERACTIVE])
        if request.tool == PROPOSE_PLAN and not is_plan(request.args):
            return _denied(request, _NO_PLAN)
        question = JudgedCall(request.tool, request.args, "L0", "meta", tainted=request.tainted)
        return await self._ask(request, envelope, digest, question, "")

    async def _put_folder(self, request: GrantRequest, envelope: Envelope, digest: str) -> GrantResult | None:
        """Ask the owner whether to trust the workspace, unless they already do, the query is non-interactive, or the
        setting forbids it.
        """
        mode = request.mode or self._settings.mode
        if self._trust is None or self._workspace is None or request.args != {"folder": str(self._workspace.resolve())}:
            return _denied(request, "it is not the workspace")
        if self._trust.trusted(self._workspace):
            return _allowed(request)
        if mode in (NON_INTERACTIVE, "bypassPermissions") or TRUST_FOLDER in self._policy.denied_tools:
            return _denied(request, DENIES[NON_INTERACTIVE])
        return await self._ask(request, envelope, digest, JudgedCall(TRUST_FOLDER, request.args, "L0", "meta"), _TRUST)

    async def _judge_call(self, request: GrantRequest, envelope: Envelope, digest: str) -> GrantResult | None:
        safety, category = await self._tools.of(request.tool)
        plan = _approval_of(self._book.plan_of(request.query_id, request.respondent_id))
        call = JudgedCall(
            request.tool, request.args, safety, category, request.mode, request.tainted, request.refusal, plan,
            request.must_ask,
        )  # fmt: skip
        decision, why = self._policy.judge(call)
        session_id = session_of(envelope, request.query_id)
        if decision is PermissionDecision.ASK and (call.must_ask or not self._book.allows(session_id, call)):
            if request.do_not_ask:
                return _denied(request, request.do_not_ask)
            return await self._ask(request, envelope, digest, call, why)
        return _denied(request, why) if decision is PermissionDecision.DENY else self._granted(request, digest)

    @on(PermissionRequest, concurrency=AT_ONCE)
    async def serve(self, request: PermissionRequest, envelope: Envelope) -> PermissionResult:
        """Answer a frontend's request: a list, or a person's decision."""
        user = request.of_user
        try:
            if request.verb == "decide":
                await self._decide(request)
            elif request.verb == "forget" and not await self._book.take_back(request.grant_id, user):
                raise NotOnRecord(f"nothing is remembered under {request.grant_id}")
        except LocalError as error:
            return PermissionResult(verb=request.verb, error=ErrorInfo.of(error))
        waiting = tuple(asked for _, asked in self._book.waiting(user)) if request.verb == "list" else ()
        remembered = tuple(self._book.remembered(user)) if request.verb == "remembered" else ()
        return PermissionResult(verb=request.verb, waiting=waiting, remembered=remembered)

    @on(QueryCancel, durable=CONSUMER)
    async def withdraw(self, cancel: QueryCancel, envelope: Envelope) -> None:
        """Deny what waits for a person, because the query was cancelled."""
        for approval, _ in list(self._book.waiting()):
            if approval.query_id == cancel.query_id:
                await self._approvals.decide(approval.key, "deny", CANCELLED)

    @on(SessionDeleted, durable=CONSUMER)
    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Delete the requests of a deleted session."""
        await self._book.forget_session(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Delete the requests of a deleted exchange."""
        await self._book.forget_query(deleted.query_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Deny a call that could not be checked."""
        info = ErrorInfo.of(error)
        if isinstance(message, PermissionRequest):
            return PermissionResult(verb=message.verb, error=info)
        return _denied(message, info.message) if isinstance(message, GrantRequest) else None

    async def _ask(
        self, request: GrantRequest, envelope: Envelope, digest: str, call: JudgedCall, why: str
    ) -> GrantResult | None:
        now = self._clock()
        asked = ApprovalRequest(
            query_id=request.query_id,
            respondent_id=request.respondent_id,
            call_id=request.call_id,
            session_id=session_of(envelope, request.query_id),
            tool=call.tool,
            args=request.args,
            level=call.safety,
            category=call.category,
            why=why,
            tainted=call.tainted,
            sources=request.sources,
            agent=request.agent,
            root_query_id=request.root_query_id,
            root_session_id=request.root_session_id,
            client=request.client,
            user_id=envelope.user_id or OWNER,
            owner_decides=envelope.user_id not in (None, OWNER) and self._is_owners(call.tool),
            asked_at=now,
            expires_at=now + self._settings.answer_seconds,
        )
        known = await self._approvals.ask(asked, envelope.user_id)
        return await self._settled(known, request, envelope, digest)

    def _is_owners(self, tool: str) -> bool:
        """Whether the owner alone allows what other users' conversations ask."""
        return tool == TRUST_FOLDER or (tool != CLARIFICATION and not self._settings.users_may_approve)

    async def _settled(
        self, known: StoredApproval, request: GrantRequest, envelope: Envelope, digest: str
    ) -> GrantResult | None:
        """Return the result of a request so far; one that is open is answered with the decision."""
        if (known.tool, known.digest) != (request.tool, digest):
            return _denied(request, "approval was requested for another call under its id")
        known = await self._approvals.at_present(known)
        if known.decision is None:
            self._unanswered[known.key] = request, envelope
            return None
        self._unanswered.pop(known.key, None)
        return self._result_of(known, request, digest)

    async def _answer(self, decided: StoredApproval) -> None:
        """A question is decided: answer the request that waits for it, if there is one."""
        request, envelope = self._unanswered.pop(decided.key, (None, None))
        if request is not None and envelope is not None:
            result = self._result_of(decided, request, decided.digest)
            await self.bus.publish(result, envelope.trace(), in_reply_to=envelope.id)

    def _result_of(self, decided: StoredApproval, request: GrantRequest, digest: str) -> GrantResult:
        if decided.decision == "deny":
            return _denied(request, _refusal(decided), by=decided.decided_by or "user")
        if request.tool == PROPOSE_PLAN:
            return _allowed(request, answer=decided.answer or "", mode=_approval_of(decided))
        if request.tool == CLARIFICATION:
            return _allowed(request, answer=decided.answer or "")
        if request.tool == TRUST_FOLDER:
            return _allowed(request)
        return self._granted(request, digest)

    async def _decide(self, request: PermissionRequest) -> None:
        approval, asked = self._book.asking(request.call_id, request.of_user)
        if request.of_user is not None and request.decision != "deny" and self._is_owners(asked.tool):
            raise NotYours(f"{asked.tool}: the owner decides what it may do, see users_may_approve")
        decision, answer, mode = request.decision, (request.answer or "").strip(), None
        if asked.tool in QUESTIONS_OF_THE_MODEL and decision != "deny":
            decision, mode = "allow", request.mode
            if asked.tool == CLARIFICATION and not answer:
                raise AnswerMissing("answer: the model has asked something, and this says nothing")
        if request.mode is not None and asked.tool != PROPOSE_PLAN:
            raise NotYours("mode: a plan is approved with one, and this is none")
        if mode == "acceptEdits" and request.of_user is not None:
            raise NotYours("mode: only the owner decides that edits need no approval")
        if asked.tool == TRUST_FOLDER:
            decision = self._trust_folder(request, Path(asked.args["folder"]))
        await self._approvals.decide(approval.key, decision, request.by, answer or None, mode)

    def _trust_folder(self, request: PermissionRequest, folder: Path) -> Decision:
        """Trust the folder of a request if the owner decides so. Its instructions (LOCAL2.md, profiles) do not count
        before the owner has looked at them.
        """
        if request.of_user is not None:
            raise NotYours("the owner decides which folders are trusted")
        if request.decision == "deny" or self._trust is None:
            return "deny"
        if not self._trust.trusted(folder):
            self._trust.trust(folder, WorkspaceInstructions(), WorkspaceProfiles())
        return "allow"

    def _granted(self, request: GrantRequest, digest: str) -> GrantResult:
        failpoints.reach("gatekeeper.grants")
        grant = Grant(
            call_id=request.call_id,
            respondent_id=request.respondent_id,
            tool=request.tool,
            args_sha256=digest,
            expires_at=self._clock() + self._settings.grant_seconds,
            key_id=self._key.key_id,
        )
        signed = grant.model_copy(update={"signature": self._key.sign(grant.statement())})
        return _allowed(request, grant=signed)


class NotYours(BadRequest):
    """The error that a decision belongs to another user."""

    kind = "forbidden"


class AnswerMissing(BadRequest):
    """The error that an answer to the model is empty."""

    kind = "invalid"


def _refusal(decided: StoredApproval) -> str:
    if decided.decided_by == SILENCE:
        return f"nobody answered within {decided.expires_at - decided.asked_at:g} s"
    if decided.decided_by == CANCELLED:
        return "the query was cancelled"
    if decided.tool == CLARIFICATION:
        return "the user gave no answer"
    return f"the user said no: {decided.answer}" if decided.answer else "the user said no"


def _approval_of(plan: StoredApproval | None) -> PlanMode | None:
    """Return how the rest of a turn runs with that plan; None unless it is approved."""
    if plan is None or plan.decision in (None, "deny"):
        return None
    return "acceptEdits" if plan.mode == "acceptEdits" else "default"


def _allowed(request: GrantRequest, **told: Any) -> GrantResult:
    return _result(request, PermissionDecision.ALLOW, **told)


def _denied(request: GrantRequest, why: str, **told: Any) -> GrantResult:
    return _result(request, PermissionDecision.DENY, why=why, **told)


def _result(request: GrantRequest, decision: PermissionDecision, **told: Any) -> GrantResult:
    whose = {"query_id": request.query_id, "respondent_id": request.respondent_id, "call_id": request.call_id}
    return GrantResult(**whose, decision=decision, **told)
