"""The tool that changes or withdraws a note in the memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.errors import ToolError
from local.protocol.memory_messages import MemoryRequest
from local.tools.memory_access import short_id
from local.tools.note_tools.note_tool import MOST_CATEGORY_CHARS, MOST_CHARS, NoteTool


class MemoryEditTool(NoteTool):
    """Replace a note that memory_write has made, or withdraw it where it is wrong or over. search_memory shows the ids
    of notes. The user can have the old note back."""

    name = "memory_edit"
    publishes = ("memory.request.notes",)

    async def run(
        self,
        note: Annotated[str, Field(pattern="^[0-9a-f]{8,32}$", description="Its id, as search_memory shows it")],
        text: Annotated[
            str, Field(max_length=MOST_CHARS, description="What it is to say instead; empty to withdraw it")
        ] = "",
        category: Annotated[str, Field(max_length=MOST_CATEGORY_CHARS, description="What it is about")] = "",
    ) -> str:
        """What the call says is done by the memory, from the record of the turn."""
        await self.memory.expect()
        known = await self.memory.ask(self, MemoryRequest(verb="notes"))
        found = [each for each in known.engrams if each.engram_id.startswith(note)]
        if len(found) != 1:
            there = ", ".join(short_id(each.engram_id) for each in known.engrams[:20]) or "none"
            raise ToolError(f"{note} names {len(found)} notes that hold; there are: {there}", kind="bad_argument")
        if not text.strip():
            return f"note {short_id(found[0].engram_id)} is withdrawn when this answer has ended"
        return f"note {short_id(found[0].engram_id)} is replaced by {self.own_id()} when this answer has ended"
