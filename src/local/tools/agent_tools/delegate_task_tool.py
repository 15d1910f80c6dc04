"""The tool by which agents do tasks, side by side."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from local.errors import ToolError
from local.tools.agent_tools.agent import Asking, GivenTask
from local.tools.agent_tools.agent_order import AgentOrder, TaskOrder
from local.tools.agent_tools.agent_tool import AgentTool, Name, TaskText
from local.tools.agent_tools.task_form import check_form
from local.tools.tool import ToolOutput

MOST_TASKS = 16


class DelegateTaskTool(AgentTool):
    """Give tasks to agents of your own, which do them side by side, each with your tools. An agent knows nothing but
    its task: write down all that it needs. Use it where parts of a question can be worked on apart."""

    name = "delegate_task"

    async def run(
        self,
        tasks: Annotated[list[TaskText], "One task for each agent", Field(min_length=1, max_length=MOST_TASKS)],
        schema: Annotated[dict[str, Any] | None, "A JSON Schema that each answer has to follow"] = None,
        wait: Annotated[bool, "False: do not wait; list_agents tells what has come of them"] = True,
        agent: Annotated[Name | None, "An agent that there is, for one task more"] = None,
        tools: Annotated[list[str] | None, "Which of your tools they get; without it all"] = None,
        profile: Annotated[str | None, "What kind of assistants they are; without it as you are"] = None,
    ) -> ToolOutput:
        """The results, in the order of the tasks, failures included."""
        if schema is not None:
            check_form(schema)
        if agent is not None and len(tasks) != 1:
            raise ToolError("one agent takes one task at a time", kind="bad_arguments")
        asking, call_id = await self.asking(), self.request().call_id
        orders = [
            TaskOrder(
                text=text, call_id=call_id, index=index, cause_id=self.asked_by().cause_id, form=schema,
                in_background=not wait, tainted=self.request().tainted,
            )
            for index, text in enumerate(tasks)
        ]  # fmt: skip
        wanted = AgentOrder(
            name="agent", tools=None if tools is None else tuple(tools), profile=await self.profile(profile),
            passing=True, tainted=self.request().tainted,
        )  # fmt: skip
        refused: list[dict[str, Any]] = []
        for order in orders:
            try:
                self._give(asking, order, agent, wanted, len(orders) - order.index)
            except ToolError as error:
                if len(orders) == 1:
                    raise
                refused.append(_refused(order, error))
        await self._runner.begin(self._runner.tree.of_call(call_id))
        done = await self._runner.outcome_of(call_id, self._settings.wait_seconds if wait else 0.0)
        results = [{"task": task.index, **self.told(task)} for task in done] + refused
        results.sort(key=lambda result: result["task"])
        return self.output(json.dumps({"results": results}, ensure_ascii=False), done)

    def _give(self, asking: Asking, order: TaskOrder, agent: str | None, wanted: AgentOrder, parts: int) -> GivenTask:
        tree, now = self._runner.tree, self._runner.clock()
        if agent is not None:
            return tree.give(tree.named(asking, agent), asking, order, now)
        made = tree.make(asking, wanted, order.call_id, order.index, now, parts)
        return tree.give(made, asking, order, now)


def _refused(order: TaskOrder, error: ToolError) -> dict[str, Any]:
    return {"task": order.index, "status": "refused", "error": {"kind": error.kind, "message": str(error)}}
