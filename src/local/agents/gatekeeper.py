"""The gatekeeper: gives leave to calls that do more than read, by the owner's policy or by asking a person."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from local import failpoints
from local.agents.permissions.approval_book import ApprovalBook, key_of
from local.agents.permissions.approvals import Approvals
from local.agents.permissions.gatekeeper_config import GatekeeperConfig
from local.agents.permissions.permission_policy import DENIES, JudgedCall, Ruling
from local.agents.permissions.safety_registry import SafetyRegistry
from local.errors import BadRequest, LocalError, NotOnRecord
from local.protocol.envelope import Envelope, session_of
from local.protocol.grant import Grant, arguments_digest
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import (
    ErrorInfo,
    Message,
    QueryCancel,
    SessionDeleted,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.protocol.permission_messages import (
    QUESTIONS_OF_THE_MODEL,
    SILENCE,
    ApprovalRequest,
    GrantRequest,
    GrantResult,
    PermissionRequest,
    PermissionResult,
)
from local.protocol.plan_messages import PlanMode, is_plan
from local.protocol.safety import NOBODY_THERE
from local.protocol.turn_tools import CLARIFICATION, PROPOSE_PLAN
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.approval_store import ApprovalStore, StoredApproval
from local.services.signing import FOLDER, SigningKey
from local.services.sqlite_file import open_patiently

CONSUMER = "gatekeeper"
AT_ONCE = 64
CANCELLED = "cancelled"  # in `by`
_NO_PLAN = "it is no plan, so nobody was asked"
_UNREADABLE = "its arguments cannot be read, so nobody was asked"


class GatekeeperService(Participant):
    """Signs grants, which tools check themselves: it alone holds the key. What it asks, it has on record before anybody
    hears of it; so it is asked once, whatever dies, and the first decision is the one that counts."""

    name = "gatekeeper"
    kind = Kind.SERVICE
    Config = GatekeeperConfig
    publishes = (Approvals, ToolSchemaRequest)

    def __init__(
        self,
        config: GatekeeperConfig,
        store: ApprovalStore,
        key: Callable[[], SigningKey],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`key` reads the key, `clock` gives seconds since 1970."""
        super().__init__(config)
        self._settings, self._policy, self._store, self._clock = config, config.policy(), store, clock
        self._read_key, self._book, self._tools = key, ApprovalBook(store), SafetyRegistry()
        self._approvals: Approvals
        self._key: SigningKey

    @classmethod
    def build(cls, config: GatekeeperConfig, resources: Resources) -> Self:
        """With a file of its own, and the key in the data directory."""
        store = ApprovalStore(resources.data_dir / "approvals.db")
        return cls(config, store, lambda: SigningKey.of(resources.data_dir / FOLDER))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the file, and go on with what an earlier process has begun."""
        self._key = await open_patiently(self._read_key)
        self._approvals = Approvals(self.bus, self._book, self._clock)
        async with self._store:
            await self._book.load()
            async with self._approvals.going_on():
                yield

    async def announce(self) -> None:
        """Ask which tools there are."""
        await self.bus.publish(ToolSchemaRequest())

    def details(self) -> dict[str, str]:
        """What holds where a query says nothing, which tools are never used, and how many questions are open."""
        may_bypass = "yes" if self._settings.may_bypass else "no"
        waiting = sum(1 for _ in self._book.waiting())
        denied = ", ".join(self._policy.denied_tools)
        told = {"mode": self._settings.mode, "may_bypass": may_bypass, "waiting": str(waiting)}
        return {**told, "denied": denied} if denied else told

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> None:
        """A tool says what it is."""
        if self.may_say(envelope, ToolResult.subject + schema.tool):
            self._tools.heard(schema)

    @on(GrantRequest, concurrency=AT_ONCE)
    async def judge(self, request: GrantRequest, envelope: Envelope) -> GrantResult:
        """A call that needs leave: it has it, or not, or somebody is asked."""
        try:
            digest = arguments_digest(request.args)
        except ValueError:
            return _result(request, "denied", why=_UNREADABLE)
        known = self._book.get(key_of(request.call_id, request.respondent_id))
        if known is not None:
            return await self._settled(known, request, digest)
        if request.tool in QUESTIONS_OF_THE_MODEL:
            return await self._put(request, envelope, digest)
        return await self._judge_call(request, envelope, digest)

    async def _put(self, request: GrantRequest, envelope: Envelope, digest: str) -> GrantResult:
        """A question of the model, or a plan: whoever is there is asked."""
        if (request.mode or self._settings.mode) == NOBODY_THERE:
            return _result(request, "denied", why=DENIES[NOBODY_THERE])
        if request.tool == PROPOSE_PLAN and not is_plan(request.args):
            return _result(request, "denied", why=_NO_PLAN)
        question = JudgedCall(request.tool, request.args, "L0", "meta", tainted=request.tainted)
        return await self._ask(request, envelope, digest, question, "")

    async def _judge_call(self, request: GrantRequest, envelope: Envelope, digest: str) -> GrantResult:
        safety, category = await self._tools.of(request.tool)
        plan = _approval_of(self._book.plan_of(request.query_id, request.respondent_id))
        call = JudgedCall(
            request.tool, request.args, safety, category, request.mode, request.tainted, request.refusal, plan,
            request.must_ask,
        )  # fmt: skip
        leave, why = self._policy.judge(call)
        session_id = session_of(envelope, request.query_id)
        if leave is Ruling.ASKED and (call.must_ask or not self._book.allows(session_id, call)):
            return await self._ask(request, envelope, digest, call, why)
        return _result(request, "denied", why=why) if leave is Ruling.DENIED else self._granted(request, digest)

    @on(PermissionRequest, concurrency=AT_ONCE)
    async def serve(self, request: PermissionRequest, envelope: Envelope) -> PermissionResult:
        """A door shows what there is, or brings what somebody has decided."""
        user = request.of_user
        try:
            if request.verb == "decide":
                await self._decide(request)
            elif request.verb == "forget" and not await self._book.take_back(request.leave_id, user):
                raise NotOnRecord(f"nothing is remembered under {request.leave_id}")
        except LocalError as error:
            return PermissionResult(verb=request.verb, error=ErrorInfo.of(error))
        waiting = tuple(asked for _, asked in self._book.waiting(user)) if request.verb == "list" else ()
        remembered = tuple(self._book.remembered(user)) if request.verb == "remembered" else ()
        return PermissionResult(verb=request.verb, waiting=waiting, remembered=remembered)

    @on(QueryCancel, durable=CONSUMER)
    async def withdraw(self, cancel: QueryCancel, envelope: Envelope) -> None:
        """Nobody wants an answer any more: what waits for it is denied."""
        for approval, _ in list(self._book.waiting()):
            if approval.query_id == cancel.query_id:
                await self._approvals.decide(approval.key, "deny", CANCELLED)

    @on(SessionDeleted, durable=CONSUMER)
    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is gone."""
        await self._book.forget_session(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """An exchange is gone."""
        await self._book.forget_query(deleted.query_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What could not be looked up is not allowed."""
        info = ErrorInfo.of(error)
        if isinstance(message, PermissionRequest):
            return PermissionResult(verb=message.verb, error=info)
        return _result(message, "denied", why=info.message) if isinstance(message, GrantRequest) else None

    async def _ask(
        self, request: GrantRequest, envelope: Envelope, digest: str, call: JudgedCall, why: str
    ) -> GrantResult:
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
            asked_at=now,
            expires_at=now + self._settings.answer_seconds,
        )
        return await self._settled(await self._approvals.ask(asked, envelope.user_id), request, digest)

    async def _settled(self, known: StoredApproval, request: GrantRequest, digest: str) -> GrantResult:
        """What has become of a question by now."""
        if (known.tool, known.digest) != (request.tool, digest):
            return _result(request, "denied", why="leave was asked for another call under its id")
        known = await self._approvals.at_present(known)
        if known.decision is None:
            return _result(request, "asked", expires_at=known.expires_at)
        if known.decision == "deny":
            return _result(request, "denied", why=_refusal(known), by=known.decided_by or "")
        if request.tool == PROPOSE_PLAN:
            return _result(request, "granted", answer=known.answer or "", mode=_approval_of(known))
        if request.tool == CLARIFICATION:
            return _result(request, "granted", answer=known.answer or "")
        return self._granted(request, digest)

    async def _decide(self, request: PermissionRequest) -> None:
        approval, asked = self._book.asking(request.call_id, request.of_user)
        if request.of_user is not None and asked.tool != CLARIFICATION and not self._settings.users_may_approve:
            raise LeaveRefused(f"{asked.tool}: the owner decides what it may do, see users_may_approve")
        decision, answer, mode = request.decision, (request.answer or "").strip(), None
        if asked.tool in QUESTIONS_OF_THE_MODEL and decision != "deny":
            decision, mode = "allow", request.mode
            if asked.tool == CLARIFICATION and not answer:
                raise AnswerMissing("answer: the model has asked something, and this says nothing")
        if request.mode is not None and asked.tool != PROPOSE_PLAN:
            raise LeaveRefused("mode: a plan is approved with one, and this is none")
        if mode == "acceptEdits" and request.of_user is not None:
            raise LeaveRefused("mode: the owner decides that edits need no leave")
        await self._approvals.decide(approval.key, decision, request.by, answer or None, mode)

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
        return _result(request, "granted", grant=signed)


class LeaveRefused(BadRequest):
    """Somebody decides what is not theirs to decide."""

    kind = "forbidden"


class AnswerMissing(BadRequest):
    """Somebody answers the model without a word."""

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
    """How the rest of a turn runs with that plan; None unless it is approved."""
    if plan is None or plan.decision in (None, "deny"):
        return None
    return "acceptEdits" if plan.mode == "acceptEdits" else "default"


def _result(request: GrantRequest, verdict: Any, **told: Any) -> GrantResult:
    whose = {"query_id": request.query_id, "respondent_id": request.respondent_id, "call_id": request.call_id}
    return GrantResult(**whose, verdict=verdict, **told)
