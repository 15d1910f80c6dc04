"""The tool by which one agent writes to another."""

from __future__ import annotations

from typing import Annotated

from local.tools.agent_tools.agent_tool import AgentTool, Name, TaskText
from local.tools.tool import ToolOutput


class SendMessageTool(AgentTool):
    """Write to an agent of this conversation, who reads it with check_inbox."""

    name = "send_message"

    async def run(
        self,
        to: Annotated[Name, "Its name; or parent, who has made you; or root, who talks with the user"],
        text: Annotated[TaskText, "What to tell"],
    ) -> ToolOutput:
        """That the message is there."""
        asking, request = await self.asking(), self.request()
        self._post.send(asking, to, text, request.call_id, self._runner.clock(), tainted=request.tainted)
        await self._runner.save()
        return ToolOutput(f"{to} has it in the inbox.")
