"""What the tools that keep notes have in common."""

from __future__ import annotations

from local.config import Settings
from local.runtime.participant import Settingless
from local.services.engrams.engram import USERS_RESPONDENT, engram_id
from local.tools.memory_access import ANSWER_SECONDS, PRESENCE_SECONDS, MemoryAccess, short_id
from local.tools.tool import Tool

MOST_CHARS = 2000
MOST_CATEGORY_CHARS = 60


class NoteTool(Tool):
    """A tool whose call is itself the note: the memory keeps what an answered call says, as the turn's record has
    it."""

    effect = "none"
    safety = "L1"
    category = "memory"
    trusted = True  # what it tells are ids
    timeout_seconds = PRESENCE_SECONDS + ANSWER_SECONDS + 1.0

    def __init__(self, config: Settings | None = None, memory: MemoryAccess | None = None) -> None:
        super().__init__(config or Settingless())
        self.memory = memory or MemoryAccess()

    def own_id(self) -> str:
        """The id by which the note of this call is known."""
        return short_id(engram_id(self.request().call_id, USERS_RESPONDENT))
