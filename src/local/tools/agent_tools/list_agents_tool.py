"""The tool that tells how agents are."""

from __future__ import annotations

import json

from local.tools.agent_tools.agent import Json
from local.tools.agent_tools.agent_tool import AgentTool
from local.tools.tool import ToolOutput

MOST_SHOWN = 2000  # characters of an answer


class ListAgentsTool(AgentTool):
    """Tell how your agents are, what each was asked last and has answered, and what it has used."""

    name = "list_agents"

    async def run(self) -> ToolOutput:
        """The agents that whoever asks has made, and theirs."""
        asking = await self.asking()
        tree, now = self._runner.tree, self._runner.clock()
        agents, tasks = tree.below(asking), []
        listed = []
        for agent in agents:
            latest = tree.tasks_of(agent.agent_id)[-1:]
            tasks += latest
            used = tree.used(agent, now)
            told: Json = {"agent": agent.name, "state": agent.state, "depth": agent.depth}
            told |= {"tokens": f"{used.tokens} of {agent.budget.tokens}"}
            for task in latest:
                told |= {"task": task.text[:MOST_SHOWN], **self.told(task)}
                if "answer" in told:
                    told["answer"] = told["answer"][:MOST_SHOWN]
            listed.append(told)
        return self.output(json.dumps({"agents": listed}, ensure_ascii=False), tasks)
