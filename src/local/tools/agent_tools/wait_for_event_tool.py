"""The tool by which an agent waits until something has happened."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from local.errors import ToolError
from local.tools.agent_tools.agent import AgentEvent, Asking
from local.tools.agent_tools.agent_tool import AgentTool, Name
from local.tools.tool import ToolOutput


class WaitForEventTool(AgentTool):
    """Wait until an agent of this conversation has told that something has happened; at once if one has."""

    name = "wait_for_event"

    async def run(
        self,
        name: Annotated[Name, "What it is called"],
        after: Annotated[int, "The number of the last one that you know", Field(ge=0)] = 0,
        seconds: Annotated[float, "How long to wait at most", Field(gt=0, le=600)] = 60,
    ) -> ToolOutput:
        """The event, with its number."""
        event = await self._event(await self.asking(), name, after, min(seconds, self._settings.wait_seconds))
        if event is None:
            raise ToolError(f"no {name} within {seconds:g} s", kind="timeout")
        told = {"number": event.number, "from": event.sender_name, "text": event.text}
        return ToolOutput(json.dumps(told, ensure_ascii=False), tainted=event.tainted)

    async def _event(self, asking: Asking, name: str, after: int, seconds: float) -> AgentEvent | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (event := self._post.event(asking, name, after)) is None:
                    await self._runner.news()
                return event
        return None
