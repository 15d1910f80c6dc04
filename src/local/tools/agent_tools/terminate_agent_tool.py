"""The tool that ends an agent."""

from __future__ import annotations

from typing import Annotated

from local.tools.agent_tools.agent_tool import AgentTool, Name


class TerminateAgentTool(AgentTool):
    """End one of your agents, with all agents that it has made; what they are doing is cancelled."""

    name = "terminate_agent"

    async def run(self, agent: Annotated[Name, "Its name"]) -> str:
        """That the agent ends."""
        found = self._runner.tree.named(await self.asking(), agent)
        await self._runner.stop(found)
        return f"{found.name} has ended."
