"""The tools that a turn is itself: on the bus they are like any other, and their calls are answered here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from local.agents.answering import plans, todo_list, tool_finder
from local.agents.answering.context.token_budget import ROUND_SHARE
from local.agents.answering.result_reader import ResultReader
from local.agents.answering.steps import READ_RESULT, PlannedCall
from local.agents.answering.turn import Turn
from local.agents.answering.turn_context import TurnContext
from local.agents.answering.turn_output import TurnOutput
from local.errors import ToolError
from local.protocol.messages import ErrorInfo, ToolRequest, ToolResult, ToolSchema
from local.protocol.permission_messages import GrantResult
from local.protocol.plan_messages import PlanArguments, PlanCreated, PlanStep, StepArguments, latest_plan
from local.protocol.todo_messages import TodoArguments, TodoUpdated
from local.protocol.turn_tools import PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH


class OwnTools:
    """Answers the calls of one turn."""

    def __init__(self, turn: Turn, context: TurnContext, output: TurnOutput) -> None:
        self._turn, self._context, self._output = turn, context, output

    async def answer(
        self, request: ToolRequest, leave: GrantResult | None, offered: Mapping[str, ToolSchema]
    ) -> ToolResult:
        """What such a tool answers, beside what is offered; everybody hears of it, and of what it has changed."""
        if request.tool == READ_RESULT:
            result = await self._part(request)
        elif request.tool == TOOL_SEARCH:
            others = (schema for name, schema in offered.items() if name != TOOL_SEARCH)
            result = _result(request, tool_finder.told(str(request.args["query"]), others))
        elif request.tool == PLAN_STEP:
            return await self._follow(request)
        elif request.tool == TODO_LIST:
            return await self._keep_list(request)
        elif leave is None:  # nobody was asked, so that nobody has answered
            raise ToolError(f"{request.tool}: there is nobody who could be asked", kind="unavailable")
        else:
            result = _result(request, plans.approved(leave) if request.tool == PROPOSE_PLAN else leave.answer or "")
        await self._output.tell(request, result)
        return result

    async def propose(self, call: PlannedCall) -> None:
        """A plan is about to be shown to the user: everybody hears of it, once."""
        told = PlanArguments.model_validate(call.args)
        created = PlanCreated(
            query_id=self._turn.question.query_id,
            respondent_id=self._turn.question.respondent_id,
            call_id=call.call_id,
            title=told.title,
            steps=told.steps,
        )
        await self._output.tell_once(created, call.call_id)

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
            await self._output.tell(request, result)
            return result
        moved = PlanStep(**{**whose, "call_id": plan.call_id}, index=told.step - 1, state=told.state)
        result = _result(request, plans.followed(plan.moved(told)))
        await self._output.tell(request, result, moved)
        return result

    async def _keep_list(self, request: ToolRequest) -> ToolResult:
        items = TodoArguments.model_validate(request.args).items
        result = _result(request, todo_list.told(items))
        whose = request.model_dump(include={"query_id", "respondent_id", "call_id"})
        await self._output.tell(request, result, TodoUpdated(**whose, items=items))
        return result


def _result(request: ToolRequest, text: str) -> ToolResult:
    named = request.model_dump(include={"query_id", "respondent_id", "call_id", "tool"})
    return ToolResult(**named, result=text)
