"""How tools ask the memory."""

from __future__ import annotations

from local.errors import RequestTimeout, ToolError
from local.protocol.memory_messages import MemoryRequest, MemoryResult
from local.protocol.messages import ParticipantStatus
from local.runtime.presence import Presence
from local.tools.tool import Tool

MEMORY = "memory"
PRESENCE_SECONDS = 3.0
ANSWER_SECONDS = 10.0
_SHORT = 8


class MemoryAccess:
    """Knows whether the memory lives, and waits for its answers. Raises `ToolError`, for the model to read."""

    def __init__(self) -> None:
        self._presence = Presence(MEMORY)

    def heard(self, status: ParticipantStatus) -> None:
        """A participant has said how it is."""
        self._presence.heard(status)

    async def expect(self) -> None:
        """Wait a moment for a memory that has yet to be heard."""
        if not await self._presence.lives_within(PRESENCE_SECONDS):
            raise ToolError("the memory does not run, so nothing was looked up or noted", kind="unavailable")

    async def ask(self, tool: Tool, request: MemoryRequest) -> MemoryResult:
        """The memory's answer, on behalf of whoever's call the tool runs."""
        try:
            result = await tool.bus.request(request, MemoryResult, ANSWER_SECONDS, tool.asked_by())
        except RequestTimeout:
            text = f"the memory has not answered within {ANSWER_SECONDS:g} s, so nothing was looked up or noted"
            raise ToolError(text, kind="unavailable") from None
        if result.error is not None:
            raise ToolError(f"the memory could not be asked: {result.error.message}", kind=result.error.kind)
        return result


def short_id(engram_id: str) -> str:
    """The beginning of an engram's id, by which a model names a note."""
    return engram_id[:_SHORT]
