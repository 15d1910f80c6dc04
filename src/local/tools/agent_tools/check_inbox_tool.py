"""The tool by which an agent reads what others have written."""

from __future__ import annotations

from local.tools.agent_tools.agent_tool import AgentTool
from local.tools.tool import ToolOutput


class CheckInboxTool(AgentTool):
    """Read what agents have written to you, and what came of tasks for which you did not wait. Each is told once."""

    name = "check_inbox"

    async def run(self) -> ToolOutput:
        """What is new."""
        asking = await self.asking()
        mails = self._post.inbox(asking, self.request().call_id)
        await self._runner.save()
        told = "\n\n".join(f"{each.sender_name} has written:\n{each.text}" for each in mails)
        return ToolOutput(told or "Nothing is new.", tainted=any(each.tainted for each in mails))
