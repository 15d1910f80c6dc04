"""The tool calls of a turn: made side by side, each with its time limit; results are stored for a process that
continues the turn.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from local.bus.blobs import BlobStore
from local.bus.message import ErrorInfo
from local.bus.messages import (
    PlanArguments,
    PlanCreated,
    PlanStep,
    StepArguments,
    TodoArguments,
    TodoUpdated,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    ToolSchema,
    latest_plan,
)
from local.bus.vocabulary import (
    CLARIFICATION,
    NON_INTERACTIVE,
    PLAN_STEP,
    PROPOSE_PLAN,
    TODO_LIST,
    TOOL_SEARCH,
    TRUST_FOLDER,
)
from local.core import failpoints
from local.core.errors import LocalError, MalformedFrame, RequestTimeout, ToolError, ToolGone
from local.generator import builtin_tools as plans
from local.generator import builtin_tools as todo_list
from local.generator import builtin_tools as tool_finder
from local.generator.builtin_tools import SCHEMAS, ResultReader
from local.generator.context import ROUND_SHARE
from local.generator.fitting import PromptFitter
from local.generator.hooks import TurnHooks
from local.generator.output import TurnOutput
from local.generator.permissions import PermissionClient
from local.generator.steps import READ_RESULT, NextStep, PlannedCall, TurnState, parse_record
from local.generator.taint import TurnTaint
from local.generator.taint_policy import NOT_GIVEN, PRIVATE_WORDS, REFUSALS, TAINTED, TaintPolicy
from local.generator.tool_list import TurnOffer
from local.generator.tool_registry import ToolRegistry
from local.generator.turn import Turn, denial_key, denied_before, refused, why_not_asked
from local.models.chat import ChatModel
from local.models.leases import Leases, Priority
from local.permissions.messages import QUESTIONS_OF_THE_MODEL, GrantRequest, GrantResult, PermissionDecision
from local.tools.arguments import argument_fault

# The approval of the calls of one turn: which need it, the question, and the result of a denial for the model.

DENIED, UNANSWERED = "denied", "unanswered"
QUESTIONS = {
    NOT_GIVEN: "Neither you nor a search has given that address in this conversation.",
    PRIVATE_WORDS: "Some of what it would send is private to you.",
    TAINTED: "",  # the sources explain it
}


@dataclass(frozen=True, slots=True)
class ApprovalFlow:
    """The approval of one turn's calls. `gate` is None where nothing is ever asked."""

    turn: Turn
    gate: PermissionClient | None
    output: TurnOutput
    taint: TurnTaint

    def may_lift(self, record: ToolCallRecord, schema: ToolSchema | None) -> bool:
        """Whether a person may lift this refusal by the rule of taint."""
        if self.gate is None or schema is None or record.error is None or record.error.kind not in REFUSALS:
            return False
        return schema.safety != "L0" or self._mode != NON_INTERACTIVE

    def is_needed(self, schema: ToolSchema) -> bool:
        """Whether calls of a tool need approval: those of one that only reads do not, unless the owner has it denied; a
        question of the model does, since its user answers by approving it."""
        if self.gate is None:
            return False
        return schema.safety != "L0" or schema.tool in QUESTIONS_OF_THE_MODEL or self.gate.denies(schema.tool)

    async def of_folder(self, record: ToolCallRecord, on_asked: Callable[[], object]) -> bool:
        """Ask the owner whether they trust the folder whose files a call has read, unless the turn is non-interactive;
        returns the answer.
        """
        if self.gate is None or not await self.gate.may_ask_soon(self.turn.question):
            return False
        request = GrantRequest(
            query_id=self.turn.question.query_id,
            respondent_id=self.turn.question.respondent_id,
            call_id=f"{record.call_id}:folder",
            tool=TRUST_FOLDER,
            args={"folder": record.folder},
            mode=self._mode,
            **self.turn.question.whose,
        )
        try:
            result = await self.output.ask_permission(self.gate, request, on_asked)
        except ToolError:  # no gatekeeper answers
            return False
        return result.decision is PermissionDecision.ALLOW

    async def of(
        self,
        call: PlannedCall,
        refusal: ErrorInfo | None,
        on_asked: Callable[[], object],
        must_ask: str = "",
        do_not_ask: str = "",
    ) -> GrantResult | ToolCallRecord:
        """The grant for a call, or its record if it is not made; `refusal` is that of the rule of taint, `must_ask` why
        a hook wants a person to decide, `do_not_ask` why no person is asked."""
        assert self.gate is not None, "without a gate nobody comes here"
        tainted = self.turn.tainted and call.tool not in self.taint.settings.may_write
        request = GrantRequest(
            query_id=self.turn.question.query_id,
            respondent_id=self.turn.question.respondent_id,
            call_id=call.call_id,
            tool=call.tool,
            args=call.args,
            mode=self._mode,
            tainted=tainted,
            sources=await self.taint.sources() if tainted else (),
            refusal="" if refusal is None else QUESTIONS[refusal.kind],
            must_ask=must_ask,
            do_not_ask=do_not_ask,
            **self.turn.question.whose,
        )
        try:
            result = await self.output.ask_permission(self.gate, request, on_asked)
        except ToolError as error:
            return refused(call, refusal.kind, refusal.message) if refusal else refused(call, error.kind, str(error))
        failpoints.reach("turn.granted")
        if result.decision is PermissionDecision.ALLOW:
            return result
        if do_not_ask and not result.by:
            return denied_before(call, do_not_ask)
        if refusal is not None and not result.by:
            return refused(call, refusal.kind, refusal.message)
        if call.tool == CLARIFICATION:
            return refused(call, UNANSWERED, f"{result.why}; go on without an answer, and say what you assume")
        if call.tool == PROPOSE_PLAN:
            return refused(
                call, DENIED, f"the plan is not approved: {result.why}; propose another one, or go on without"
            )
        record = refused(call, DENIED, f"{call.tool} was not run: {result.why}")
        return record.model_copy(update={"denied_by": result.by})

    @property
    def _mode(self) -> str | None:
        options = self.turn.question.options
        return None if options is None else options.mode


# The parts of the process that a turn uses.


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The parts of the process that a turn uses. `answers_as` is the name to sign with if it is not the model's;
    `on_away` is called when no model server answers, `on_answered` when one has.
    """

    model: ChatModel
    prompts: PromptFitter
    tools: ToolRegistry
    model_name: str
    options: Mapping[str, Any]
    tool_timeout_seconds: float
    max_answer_tokens: int = 8192
    answers_as: str | None = None
    priority: Priority = field(default_factory=lambda: Priority(Leases(), ""))
    clock: Callable[[], float] = field(default=time.monotonic)
    blobs: BlobStore | None = None
    offer: TurnOffer = field(default_factory=TurnOffer)
    user_id: str | None = None
    gate: PermissionClient | None = None  # without one, no call asks for grant, and no tool gets a grant
    on_away: Callable[[str], object] = field(default=lambda _: None)
    on_answered: Callable[[], object] = field(default=lambda: None)


# The tools that a turn is itself: on the bus they are like any other, and their calls are answered here.


class BuiltinTools:
    """The built-in tools of a turn; answers their calls."""

    def __init__(self, turn: Turn, context: TurnContext, output: TurnOutput) -> None:
        self._turn, self._context, self._output = turn, context, output

    async def answer(
        self, request: ToolRequest, grant: GrantResult | None, offered: Mapping[str, ToolSchema]
    ) -> ToolResult:
        """Return the built-in tool's result and publish it with its changes."""
        if request.tool == READ_RESULT:
            result = await self._part(request)
        elif request.tool == TOOL_SEARCH:
            others = (schema for name, schema in offered.items() if name != TOOL_SEARCH)
            result = _result(request, tool_finder.search_result(str(request.args["query"]), others))
        elif request.tool == PLAN_STEP:
            return await self._follow(request)
        elif request.tool == TODO_LIST:
            return await self._keep_list(request)
        elif grant is None:  # no person was asked, so there is no answer
            raise ToolError(f"{request.tool}: no person can be asked", kind="unavailable")
        else:
            result = _result(request, plans.approved(grant) if request.tool == PROPOSE_PLAN else grant.answer or "")
        await self._output.publish_messages(request, result)
        return result

    async def propose(self, call: PlannedCall) -> None:
        """Publish once that a plan is shown to the user."""
        told = PlanArguments.model_validate(call.args)
        created = PlanCreated(
            query_id=self._turn.question.query_id,
            respondent_id=self._turn.question.respondent_id,
            call_id=call.call_id,
            title=told.title,
            steps=told.steps,
        )
        await self._output.publish_once(created, call.call_id)

    async def _part(self, request: ToolRequest) -> ToolResult:
        """A part of a result that was cut off earlier in this turn."""
        room = partial(self._context.prompts.characters, share=ROUND_SHARE / 2)
        cut = [record for record in self._turn.records if record.whole is not None]
        return await ResultReader(cut, self._context.blobs, room).answer(request)

    async def _follow(self, request: ToolRequest) -> ToolResult:
        told = StepArguments.model_validate(request.args)
        whose = request.model_dump(include={"query_id", "respondent_id", "call_id"})
        plan = latest_plan(dict(call) for call in self._turn.records)
        if plan is None or (fault := plans.fault_of_move(plan, told)):
            error = ErrorInfo(kind="bad_arguments", message=f"{PLAN_STEP}: {fault if plan else 'there is no plan'}")
            result = ToolResult(**whose, tool=PLAN_STEP, error=error)
            await self._output.publish_messages(request, result)
            return result
        moved = PlanStep(**{**whose, "call_id": plan.call_id}, index=told.step - 1, state=told.state)
        result = _result(request, plans.followed(plan.moved(told)))
        await self._output.publish_messages(request, result, moved)
        return result

    async def _keep_list(self, request: ToolRequest) -> ToolResult:
        items = TodoArguments.model_validate(request.args).items
        result = _result(request, todo_list.list_result(items))
        whose = request.model_dump(include={"query_id", "respondent_id", "call_id"})
        await self._output.publish_messages(request, result, TodoUpdated(**whose, items=items))
        return result


def _result(request: ToolRequest, text: str) -> ToolResult:
    named = request.model_dump(include={"query_id", "respondent_id", "call_id", "tool"})
    return ToolResult(**named, result=text)


_NAMESPACE = uuid.UUID("0d3f6b7e-58d7-4c52-8a8e-9b1f1c6c2e4d")


def request_id(call_id: str, respondent_id: str) -> str:
    """The id of the envelope that makes a call: always the same, so that a tool knows a call that is made again."""
    return uuid.uuid5(_NAMESPACE, f"{call_id}\n{respondent_id}").hex


class ToolCalls:
    """The tool calls of one turn: makes the calls of the model's last message. `results` are those that have arrived,
    by call_id.
    """

    def __init__(self, turn: Turn, context: TurnContext, output: TurnOutput, taint: TurnTaint) -> None:
        self._turn, self._context, self._output, self._taint = turn, context, output, taint
        self._policy: TaintPolicy | None = None  # of the calls under way, if the turn is tainted
        self._query_id, self._respondent_id = turn.question.query_id, turn.question.respondent_id
        self.results: dict[str, ToolCallRecord] = {}
        self._kept: dict[str, ToolCallRecord] = {}  # by an earlier process
        self._offered: Mapping[str, ToolSchema] = {}
        self._unsent: set[str] = set()  # call_ids of the calls under way, as the next
        self._unsettled: set[str] = set()
        self._waiting: set[str] = set()  # for a person
        self._one_question: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # at a time, by tool and target
        self._approval = ApprovalFlow(turn, context.gate, output, taint)
        hooks = context.gate.hooks if context.gate else ()
        self._hooks = TurnHooks(hooks, turn, output) if hooks else None
        self._own = BuiltinTools(turn, context, output)

    async def recall(self) -> None:
        """Take the results that an earlier process got of the calls that it had begun."""
        records = [parse_record(body) for body in await self._output.kept_results()]
        self._kept = {record.call_id: record for record in records}

    async def make(self, offered: Mapping[str, ToolSchema]) -> NextStep:
        """Make the calls, of tools as they were offered to the model; returns when all have ended."""
        turn, self._offered = self._turn, offered
        self._policy = await self._taint.policy() if turn.tainted else None
        calls, self.results = turn.calls_to_make(offered, self._kept, self._policy)
        lifted = {call.call_id: self.results.pop(call.call_id).error for call in self._liftable()}
        calls += [call for call in turn.last_calls if call.call_id in lifted]
        self._unsent = {call.call_id for call in calls}
        self._unsettled = set(self._unsent)
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(self._make(call, lifted.get(call.call_id)), name=call.call_id)
        if not calls:
            turn.requests_sent()
        await self._ask_about_folder()
        failpoints.reach("turn.results_in")
        return turn.tools_settled(self.results)

    def _liftable(self) -> list[PlannedCall]:
        """Return the calls just refused by the rule of taint that a person may allow."""
        refused = self.results.keys() - self._kept.keys()
        return [
            call
            for call in self._turn.last_calls
            if call.call_id in refused
            and self._approval.may_lift(self.results[call.call_id], self._offered.get(call.tool))
        ]

    async def _make(self, call: PlannedCall, refusal: ErrorInfo | None) -> None:
        grant: GrantResult | ToolCallRecord | None = None
        must_ask, of_hook = "", False
        if self._hooks is not None:
            call, refusal, grant, must_ask, of_hook = await self._hooked(self._hooks, call, refusal)
        if grant is None and (refusal is not None or must_ask or self._approval.is_needed(self._offered[call.tool])):
            grant = await self._permission(call, refusal, must_ask)
        if isinstance(grant, ToolCallRecord):
            self._left(call)
            self._unsettled.discard(call.call_id)
            self.results[call.call_id] = grant.model_copy(update={"tainted": True}) if of_hook else grant
        else:
            await self._taint.keep()
            self.results[call.call_id] = await self._result(call, grant)

    async def _ask_about_folder(self) -> None:
        """Ask the owner whether they trust the folder of the files just read, before the model reads them, if nothing
        else taints the conversation. If they do not, the results taint it, and the question is not asked again.
        """
        tainting = [record for record in self.results.values() if record.tainted]
        folders = {record.folder for record in tainting}
        if self._turn.tainted or len(folders) != 1 or "" in folders:
            return
        try:
            is_trusted = await self._approval.of_folder(tainting[0], self._turn.approval_requested)
        finally:
            if self._turn.state is TurnState.WAITING_FOR_APPROVAL:
                self._turn.approval_decided()
                self._turn.requests_sent()
        if is_trusted:
            for record in tainting:
                self.results[record.call_id] = record.model_copy(update={"tainted": False, "folder": ""})

    async def _permission(
        self, call: PlannedCall, refusal: ErrorInfo | None, must_ask: str
    ) -> GrantResult | ToolCallRecord:
        """Return a grant for a call, or its record if there is none. A call with bad arguments is answered at once, as
        denied if it would be with good ones: a small model that learns of its arguments would only call it again.
        """
        parameters = self._offered[call.tool].parameters
        fault = "" if call.tool in SCHEMAS else argument_fault(call.tool, parameters, call.args)
        async with self._one_question[denial_key(call)]:
            do_not_ask = why_not_asked(call, [*self._turn.records, *self.results.values()])
            if fault:
                return denied_before(call, do_not_ask) if do_not_ask else refused(call, "bad_arguments", fault)
            try:
                if call.tool == PROPOSE_PLAN:
                    await self._own.propose(call)
                grant = await self._approval.of(call, refusal, partial(self._asked, call), must_ask, do_not_ask)
            finally:
                self._decided(call)
            if isinstance(grant, ToolCallRecord):
                self.results[call.call_id] = grant  # for the next call of this target, which waits here
            return grant

    async def _hooked(
        self, hooks: TurnHooks, call: PlannedCall, refusal: ErrorInfo | None
    ) -> tuple[PlannedCall, ErrorInfo | None, ToolCallRecord | None, str, bool]:
        """Return a call after its hooks, the taint rule's refusal of it, its record if it is not made, the reason to
        ask a person, and whether a hook added untrusted content.
        """
        schema = self._offered[call.tool]
        hooked = await hooks.before(call, schema, self._policy)
        if hooked.call is call:
            return call, refusal, hooked.record, hooked.asks, hooked.tainted
        if hooked.record is not None and self._approval.may_lift(hooked.record, schema):
            return hooked.call, hooked.record.error, None, hooked.asks, hooked.tainted
        return hooked.call, None, hooked.record, hooked.asks, hooked.tainted

    def _asked(self, call: PlannedCall) -> None:
        """Note that a person was asked about a call."""
        if not self._waiting:
            self._turn.approval_requested()
        self._waiting.add(call.call_id)

    def _decided(self, call: PlannedCall) -> None:
        if call.call_id in self._waiting:
            self._waiting.discard(call.call_id)
            if not self._waiting and self._turn.state is TurnState.WAITING_FOR_APPROVAL:
                self._turn.approval_decided()
                self._output.flush()  # it came before the request

    async def _result(self, call: PlannedCall, grant: GrantResult | None) -> ToolCallRecord:
        """Return the result, or the error that prevented it: all errors here are for the model to read."""
        context = self._context
        seconds = self._seconds_for(self._offered[call.tool])
        after_taint = self._policy is not None
        record = ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args, after_taint=after_taint)
        started = context.clock()
        try:
            settled = await self._request(call, grant, seconds)
        except LocalError as failure:
            self._left(call)
            late = isinstance(failure, RequestTimeout)
            message = f"did not answer within {seconds:g} s" if late else f"gave no answer: {failure}"
            error = ErrorInfo(kind=failure.kind, message=f"{call.tool} {message}")
            duration_ms = round((context.clock() - started) * 1000, 3)
            return record.model_copy(update={"error": error, "duration_ms": duration_ms})
        fields = ("result", "error", "sources", "links", "whole", "recalled", "undoable", "duration_ms")
        is_trusted = self._offered[call.tool].trusted
        taint = {"tainted": settled.tainted or not is_trusted, "folder": settled.folder if is_trusted else ""}
        record = record.model_copy(update={name: getattr(settled, name) for name in fields} | taint)
        if self._hooks is not None:
            record = await self._hooks.after(call, record)
        if self._unsettled:  # the last one is stored with the step
            self._output.keep_result(call.call_id, record.model_dump_json())
        return record

    async def _request(self, call: PlannedCall, grant: GrantResult | None, seconds: float) -> ToolResult:
        request = ToolRequest(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            call_id=call.call_id,
            tool=call.tool,
            args=call.args,
            same_host=self._policy is not None and self._policy.stays_on_host(call.tool, call.args),
            tainted=self._policy is not None,
            shown_since=self._turn.shown_since,
            grant=None if grant is None else grant.grant,
        )
        try:
            if call.tool in SCHEMAS:
                self._left(call)
                return await self._own.answer(request, grant, self._offered)
            if why := self._context.tools.trouble(call.tool, self._context.clock()):
                raise ToolGone(why)
            result = await self._answer(call, request, seconds)
        finally:
            self._unsettled.discard(call.call_id)
        if result.call_id != call.call_id:
            fault = f"the answer to call {call.call_id} is a result of call {result.call_id}"
            self._output.reject(fault, result)
            raise MalformedFrame(fault)
        return result

    async def _answer(self, call: PlannedCall, request: ToolRequest, seconds: float) -> ToolResult:
        """Return the tool's result, waiting while its process may still answer. Raises `ToolGone`."""
        envelope_id = request_id(call.call_id, self._respondent_id)
        asking = asyncio.ensure_future(self._output.ask_tool(request, seconds, envelope_id, lambda: self._left(call)))
        hoping = asyncio.ensure_future(self._context.tools.given_up(call.tool))
        try:
            await asyncio.wait({asking, hoping}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise ToolGone(hoping.result(), begun=self._offered[call.tool].effect == "write")
        finally:
            asking.cancel()
            hoping.cancel()
            await asyncio.gather(asking, hoping, return_exceptions=True)

    def _left(self, call: PlannedCall) -> None:
        """A request is on its way, or none will be."""
        self._unsent.discard(call.call_id)
        if not self._unsent and self._turn.state is TurnState.DISPATCHING_TOOL:
            self._turn.requests_sent()

    def _seconds_for(self, schema: ToolSchema) -> float:
        """Return a second more than the tool's own limit, so that its own timeout error comes first."""
        says = "timeout_seconds" in schema.model_fields_set
        return 1.0 + (schema.timeout_seconds if says else self._context.tool_timeout_seconds)
