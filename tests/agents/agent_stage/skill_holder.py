"""Answers for the skills in a folder of settings, as the tools for files do."""

from __future__ import annotations

from pathlib import Path

from local.bus.envelope import Envelope
from local.core.config import Settings
from local.runtime.participant import Participant, on
from local.skills.library import SkillApprovalBook, SkillLibrary, SkillProposalBook
from local.skills.messages import SkillRequest, SkillResult
from local.skills.tools import SkillPlaces, SkillService


class SkillHolder(Participant):
    """The owner's skills alone."""

    name = "files"

    def __init__(self, settings: Path) -> None:
        super().__init__(Settings())
        places = SkillPlaces(settings, (), settings.parent / "work")
        library = SkillLibrary(places, SkillApprovalBook(settings))
        self._keeper = SkillService(library, SkillProposalBook(settings, settings.parent))

    @on(SkillRequest)
    async def answer(self, request: SkillRequest, envelope: Envelope) -> SkillResult:
        return await self._keeper.answer(request)
