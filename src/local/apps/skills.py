"""The skills as a door sees them."""

from __future__ import annotations

from typing import Literal

from local.apps.participant_client import ParticipantClient
from local.protocol.skill_messages import SkillRequest, SkillResult


class Skills(ParticipantClient):
    """Asks whoever holds the skills: the tools for files do."""

    participant = "files"
    answer_seconds = 30.0
    publishes = (SkillRequest,)

    async def ask(self, verb: Literal["list", "show"], name: str = "") -> SkillResult:
        """The answer to a `SkillRequest`."""
        return await self._request(SkillRequest(verb=verb, name=name), SkillResult)
