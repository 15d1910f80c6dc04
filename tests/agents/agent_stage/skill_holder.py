"""Answers for the skills in a folder of settings, as the tools for files do."""

from __future__ import annotations

from pathlib import Path

from local.config import Settings
from local.protocol.envelope import Envelope
from local.protocol.skill_messages import SkillRequest, SkillResult
from local.runtime.participant import Participant, on
from local.services.skills.skill_approval_book import SkillApprovalBook
from local.services.skills.skill_library import SkillLibrary
from local.tools.skill_tools.skill_keeper import SkillKeeper
from local.tools.skill_tools.skill_places import SkillPlaces


class SkillHolder(Participant):
    """The owner's skills alone."""

    name = "files"

    def __init__(self, settings: Path) -> None:
        super().__init__(Settings())
        places = SkillPlaces(settings, (), settings.parent / "work")
        self._keeper = SkillKeeper(SkillLibrary(places, SkillApprovalBook(settings)))

    @on(SkillRequest)
    async def answer(self, request: SkillRequest, envelope: Envelope) -> SkillResult:
        return await self._keeper.answer(request)
