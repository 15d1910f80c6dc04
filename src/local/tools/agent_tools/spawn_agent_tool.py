"""The tool that makes an agent which stays."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from local.tools.agent_tools.agent_order import AgentOrder, TaskOrder
from local.tools.agent_tools.agent_tool import AgentTool, Name, TaskText
from local.tools.tool import ToolOutput


class SpawnAgentTool(AgentTool):
    """Make an agent that stays and remembers what it was asked, and begin its first task in the background. list_agents
    tells how it is; delegate_task with its name asks more of it; terminate_agent ends it."""

    name = "spawn_agent"

    async def run(
        self,
        name: Annotated[Name, "What it is called: small letters, digits, hyphens"],
        task: Annotated[TaskText, "All that it is to do and to know"],
        tools: Annotated[list[str] | None, "Which of your tools it gets; without it all"] = None,
        profile: Annotated[str | None, "What kind of assistant it is; without it as you are"] = None,
        tokens: Annotated[int | None, "How many tokens it may use at most", Field(ge=1000)] = None,
        seconds: Annotated[float | None, "How long it may live", Field(gt=0)] = None,
    ) -> ToolOutput:
        """The agent's name, and what it may use."""
        asking, request = await self.asking(), self.request()
        tree, now = self._runner.tree, self._runner.clock()
        order = AgentOrder(
            name=name, tools=None if tools is None else tuple(tools), profile=await self.profile(profile),
            tokens=tokens, seconds=seconds, tainted=request.tainted,
        )  # fmt: skip
        agent = tree.make(asking, order, request.call_id, 0, now)
        first = TaskOrder(
            text=task, call_id=request.call_id, cause_id=self.asked_by().cause_id, in_background=True,
            tainted=request.tainted,
        )  # fmt: skip
        given = tree.give(agent, asking, first, now)
        await self._runner.begin([given])
        told = {"agent": agent.name, "agent_id": agent.agent_id, "status": "working"}
        return self.output(json.dumps({**told, "budget": agent.budget.model_dump()}), [given])
