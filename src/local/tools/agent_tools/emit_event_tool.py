"""The tool by which an agent tells all others that something has happened."""

from __future__ import annotations

from typing import Annotated

from local.tools.agent_tools.agent_tool import AgentTool, Name, TaskText
from local.tools.tool import ToolOutput


class EmitEventTool(AgentTool):
    """Tell all agents of this conversation that something has happened; wait_for_event waits for it."""

    name = "emit_event"

    async def run(
        self,
        name: Annotated[Name, "What it is called: small letters, digits, hyphens"],
        text: Annotated[TaskText, "What has happened"],
    ) -> ToolOutput:
        """The event's number."""
        asking, request = await self.asking(), self.request()
        now = self._runner.clock()
        event = self._post.emit(asking, name, text, request.call_id, now, tainted=request.tainted)
        await self._runner.save()
        return ToolOutput(f"{name} is event {event.number}.")
