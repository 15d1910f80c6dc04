"""The tools that work on the memory, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from local.config import Settings
from local.protocol.envelope import Envelope
from local.protocol.messages import ParticipantStatus
from local.runtime.participant import Resources, Settingless, on
from local.tools.memory_access import MemoryAccess
from local.tools.note_tools.memory_edit_tool import MemoryEditTool
from local.tools.note_tools.memory_write_tool import MemoryWriteTool
from local.tools.search_memory import SearchMemoryTool
from local.tools.tool import Tool
from local.tools.tool_group import ToolGroup


class MemoryTools(ToolGroup):
    """Searches the memory, and keeps the assistant's notes in it."""

    name = "memory_tools"
    Config = Settingless
    tools = (SearchMemoryTool, MemoryWriteTool, MemoryEditTool)

    def __init__(self, config: Settings, tools: Sequence[Tool], memory: MemoryAccess) -> None:
        super().__init__(config, tools)
        self._memory = memory

    @classmethod
    def build(cls, config: Any, resources: Resources) -> MemoryTools:
        """With one knowledge of the memory for all of them."""
        memory = MemoryAccess()
        tools = [SearchMemoryTool(memory=memory), MemoryWriteTool(memory=memory), MemoryEditTool(memory=memory)]
        return cls(config, tools, memory).with_records(resources)

    @on(ParticipantStatus)
    async def notice(self, status: ParticipantStatus, envelope: Envelope) -> None:
        """The memory lives or leaves."""
        self._memory.heard(status)
