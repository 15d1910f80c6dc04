"""The tool that writes a note into the memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.errors import ToolError
from local.tools.note_tools.note_tool import MOST_CATEGORY_CHARS, MOST_CHARS, NoteTool


class MemoryWriteTool(NoteTool):
    """Write a note for later conversations: a fact, an insight or the state of a project that is worth keeping and that
    the user has not said of themselves, as that is remembered anyway. One matter a note, in a sentence or two that can
    be understood alone. A note that says what an older one says takes its place."""

    name = "memory_write"

    async def run(
        self,
        text: Annotated[str, Field(max_length=MOST_CHARS, description="The note, to be understood alone")],
        category: Annotated[
            str, Field(max_length=MOST_CATEGORY_CHARS, description="What it is about: a project, a person, insight, …")
        ] = "",
    ) -> str:
        """What the call says is kept by the memory, from the record of the turn."""
        if not text.strip():
            raise ToolError("say what is to be noted", kind="bad_argument")
        await self.memory.expect()
        return f"noted as {self.own_id()}; it can be found and changed once this answer has ended"
