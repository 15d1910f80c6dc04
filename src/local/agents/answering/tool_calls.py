"""The tool calls of a turn: made side by side, each with its time limit, their results kept for whoever goes on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from functools import partial

from local import failpoints
from local.agents.answering.call_leave import CallLeave
from local.agents.answering.own_schemas import SCHEMAS
from local.agents.answering.own_tools import OwnTools
from local.agents.answering.steps import PlannedCall, parse_record
from local.agents.answering.taint.taint_policy import TaintPolicy
from local.agents.answering.turn import Next, Turn
from local.agents.answering.turn_context import TurnContext
from local.agents.answering.turn_hooks import TurnHooks
from local.agents.answering.turn_output import TurnOutput
from local.agents.answering.turn_table import TurnState
from local.agents.answering.turn_taint import TurnTaint
from local.errors import LocalError, MalformedFrame, RequestTimeout, ToolGone
from local.protocol.messages import ErrorInfo, ToolCallRecord, ToolRequest, ToolResult, ToolSchema
from local.protocol.permission_messages import GrantResult
from local.protocol.turn_tools import PROPOSE_PLAN

_NAMESPACE = uuid.UUID("0d3f6b7e-58d7-4c52-8a8e-9b1f1c6c2e4d")


def request_id(call_id: str, respondent_id: str) -> str:
    """The id of the envelope that makes a call: always the same, so that a tool knows a call that is made again."""
    return uuid.uuid5(_NAMESPACE, f"{call_id}\n{respondent_id}").hex


class ToolCalls:
    """Makes what the model's last message calls. `results` are those that have come, by call_id."""

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
        self._leave = CallLeave(turn, context.gate, output, taint)
        hooks = context.gate.hooks if context.gate else ()
        self._hooks = TurnHooks(hooks, turn, output) if hooks else None
        self._own = OwnTools(turn, context, output)

    async def recall(self) -> None:
        """Take the results that an earlier process got of the calls that it had begun."""
        records = [parse_record(body) for body in await self._output.kept_results()]
        self._kept = {record.call_id: record for record in records}

    async def make(self, offered: Mapping[str, ToolSchema]) -> Next:
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
        failpoints.reach("turn.results_in")
        return turn.tools_settled(self.results)

    def _liftable(self) -> list[PlannedCall]:
        """What the rule of taint has refused just now, and a person may allow."""
        refused = self.results.keys() - self._kept.keys()
        return [
            call
            for call in self._turn.last_calls
            if call.call_id in refused
            and self._leave.may_lift(self.results[call.call_id], self._offered.get(call.tool))
        ]

    async def _make(self, call: PlannedCall, refusal: ErrorInfo | None) -> None:
        leave: GrantResult | ToolCallRecord | None = None
        must_ask = ""
        if self._hooks is not None:
            call, refusal, leave, must_ask = await self._hooked(self._hooks, call, refusal)
        if leave is None and (refusal is not None or must_ask or self._leave.is_needed(self._offered[call.tool])):
            try:
                if call.tool == PROPOSE_PLAN:
                    await self._own.propose(call)
                leave = await self._leave.of(call, refusal, partial(self._asked, call), must_ask)
            finally:
                self._decided(call)
        if isinstance(leave, ToolCallRecord):
            self._left(call)
            self._unsettled.discard(call.call_id)
            self.results[call.call_id] = leave
        else:
            self.results[call.call_id] = await self._result(call, leave)

    async def _hooked(
        self, hooks: TurnHooks, call: PlannedCall, refusal: ErrorInfo | None
    ) -> tuple[PlannedCall, ErrorInfo | None, ToolCallRecord | None, str]:
        """A call as hooks have left it, what the rule of taint says of it then, its record if it is not made, and why
        a person is to decide."""
        schema = self._offered[call.tool]
        hooked = await hooks.before(call, schema, self._policy)
        if hooked.call is call:
            return call, refusal, hooked.record, hooked.asks
        if hooked.record is not None and self._leave.may_lift(hooked.record, schema):
            return hooked.call, hooked.record.error, None, hooked.asks
        return hooked.call, None, hooked.record, hooked.asks

    def _asked(self, call: PlannedCall) -> None:
        """A person is asked about a call."""
        if not self._waiting:
            self._turn.leave_asked()
        self._waiting.add(call.call_id)

    def _decided(self, call: PlannedCall) -> None:
        if call.call_id in self._waiting:
            self._waiting.discard(call.call_id)
            if not self._waiting and self._turn.state is TurnState.WAITING_FOR_LEAVE:
                self._turn.leave_decided()
                self._output.flush()  # it came before the request

    async def _result(self, call: PlannedCall, leave: GrantResult | None) -> ToolCallRecord:
        """The result, or what kept us from one: whatever goes wrong here is for the model to read."""
        context = self._context
        seconds = self._seconds_for(self._offered[call.tool])
        record = ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args)
        started = context.clock()
        try:
            settled = await self._request(call, leave, seconds)
        except LocalError as failure:
            self._left(call)
            late = isinstance(failure, RequestTimeout)
            message = f"did not answer within {seconds:g} s" if late else f"gave no answer: {failure}"
            error = ErrorInfo(kind=failure.kind, message=f"{call.tool} {message}")
            duration_ms = round((context.clock() - started) * 1000, 3)
            return record.model_copy(update={"error": error, "duration_ms": duration_ms})
        fields = ("result", "error", "sources", "links", "whole", "recalled", "undoable", "duration_ms")
        tainted = settled.tainted or not self._offered[call.tool].trusted
        record = record.model_copy(update={name: getattr(settled, name) for name in fields} | {"tainted": tainted})
        if self._hooks is not None:
            record = await self._hooks.after(call, record)
        if self._unsettled:  # the last one is stored with the step
            self._output.keep_result(call.call_id, record.model_dump_json())
        return record

    async def _request(self, call: PlannedCall, leave: GrantResult | None, seconds: float) -> ToolResult:
        request = ToolRequest(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            call_id=call.call_id,
            tool=call.tool,
            args=call.args,
            same_host=self._policy is not None and self._policy.stays_on_host(call.tool, call.args),
            tainted=self._policy is not None,
            grant=None if leave is None else leave.grant,
        )
        try:
            if call.tool in SCHEMAS:
                self._left(call)
                return await self._own.answer(request, leave, self._offered)
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
        """What the tool answers, for as long as there is hope that it will. Raises `ToolGone`."""
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
        """A second more than the tool gives itself, so that its own words about being late come first."""
        says = "timeout_seconds" in schema.model_fields_set
        return 1.0 + (schema.timeout_seconds if says else self._context.tool_timeout_seconds)
