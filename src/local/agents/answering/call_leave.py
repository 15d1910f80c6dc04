"""Leave for the calls of one turn: which of them need it, what is asked, and what the model reads if there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from local import failpoints
from local.agents.answering.call_gate import CallGate
from local.agents.answering.call_rules import refused
from local.agents.answering.steps import PlannedCall
from local.agents.answering.taint.taint_policy import NOT_GIVEN, PRIVATE_WORDS, REFUSALS, TAINTED
from local.agents.answering.turn import Turn
from local.agents.answering.turn_output import TurnOutput
from local.agents.answering.turn_taint import TurnTaint
from local.errors import ToolError
from local.protocol.messages import ErrorInfo, ToolCallRecord, ToolSchema
from local.protocol.permission_messages import QUESTIONS_OF_THE_MODEL, GrantRequest, GrantResult
from local.protocol.safety import NOBODY_THERE
from local.protocol.turn_tools import CLARIFICATION, PROPOSE_PLAN

DENIED, UNANSWERED = "denied", "unanswered"
QUESTIONS = {
    NOT_GIVEN: "Neither you nor a search has given that address in this conversation.",
    PRIVATE_WORDS: "Some of what it would search for is private to you.",
    TAINTED: "",  # the sources say it
}


@dataclass(frozen=True, slots=True)
class CallLeave:
    """`gate` is None where nothing is ever asked."""

    turn: Turn
    gate: CallGate | None
    output: TurnOutput
    taint: TurnTaint

    def may_lift(self, record: ToolCallRecord, schema: ToolSchema | None) -> bool:
        """Whether a person may allow what the rule of taint has refused."""
        if self.gate is None or schema is None or record.error is None or record.error.kind not in REFUSALS:
            return False
        return schema.safety != "L0" or self._mode != NOBODY_THERE

    def is_needed(self, schema: ToolSchema) -> bool:
        """Whether calls of a tool need leave; one that only reads is asked at once, unless the owner has it denied, and
        a user answers by giving it."""
        if self.gate is None:
            return False
        return schema.safety != "L0" or schema.tool in QUESTIONS_OF_THE_MODEL or self.gate.denies(schema.tool)

    async def of(
        self, call: PlannedCall, refusal: ErrorInfo | None, on_asked: Callable[[], object], must_ask: str = ""
    ) -> GrantResult | ToolCallRecord:
        """Leave for a call, or its record if there is none; `refusal` is that of the rule of taint, `must_ask` why a
        hook wants a person to decide."""
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
            **self.turn.question.whose,
        )
        try:
            result = await self.output.ask_leave(self.gate, request, on_asked)
        except ToolError as error:
            return refused(call, refusal.kind, refusal.message) if refusal else refused(call, error.kind, str(error))
        failpoints.reach("turn.granted")
        if result.verdict == "granted":
            return result
        if refusal is not None and not result.by:
            return refused(call, refusal.kind, refusal.message)
        if call.tool == CLARIFICATION:
            return refused(call, UNANSWERED, f"{result.why}; go on without an answer, and say what you assume")
        if call.tool == PROPOSE_PLAN:
            return refused(
                call, DENIED, f"the plan is not approved: {result.why}; propose another one, or go on without"
            )
        return refused(call, DENIED, f"{call.tool} was not run: {result.why}")

    @property
    def _mode(self) -> str | None:
        options = self.turn.question.options
        return None if options is None else options.mode
