"""The tools that a turn is itself: on the bus they are like any other, and their calls are answered here."""

from __future__ import annotations

from functools import partial

from local.agents.answering import todo_list
from local.agents.answering.context.token_budget import ROUND_SHARE
from local.agents.answering.result_reader import ResultReader
from local.agents.answering.steps import READ_RESULT
from local.agents.answering.turn import Turn
from local.agents.answering.turn_context import TurnContext
from local.agents.answering.turn_output import TurnOutput
from local.protocol.messages import ToolRequest, ToolResult
from local.protocol.permission_messages import CLARIFICATION, GrantResult
from local.protocol.todo_messages import TodoArguments, TodoUpdated


class OwnTools:
    """Answers the calls of one turn."""

    def __init__(self, turn: Turn, context: TurnContext, output: TurnOutput) -> None:
        self._turn, self._context, self._output = turn, context, output

    async def answer(self, request: ToolRequest, leave: GrantResult | None) -> ToolResult:
        """What such a tool answers; everybody hears of the call, and of what it has changed."""
        if request.tool == READ_RESULT:
            result = await self._part(request)
        elif request.tool == CLARIFICATION:
            result = _result(request, (leave.answer if leave else None) or "")
        else:
            return await self._keep_list(request)
        await self._output.tell(request, result)
        return result

    async def _part(self, request: ToolRequest) -> ToolResult:
        """A part of a result that was cut off earlier in this turn."""
        room = partial(self._context.prompts.characters, share=ROUND_SHARE / 2)
        cut = [record for record in self._turn.records if record.whole is not None]
        return await ResultReader(cut, self._context.blobs, room).answer(request)

    async def _keep_list(self, request: ToolRequest) -> ToolResult:
        items = TodoArguments.model_validate(request.args).items
        result = _result(request, todo_list.told(items))
        whose = request.model_dump(include={"query_id", "respondent_id", "call_id"})
        await self._output.tell(request, result, TodoUpdated(**whose, items=items))
        return result


def _result(request: ToolRequest, text: str) -> ToolResult:
    named = request.model_dump(include={"query_id", "respondent_id", "call_id", "tool"})
    return ToolResult(**named, result=text)
