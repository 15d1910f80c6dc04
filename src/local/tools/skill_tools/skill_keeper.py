"""Holds the skills: answers what is asked of them, and tells when there are others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from local.errors import ConfigError, ToolError
from local.protocol.messages import ErrorInfo
from local.protocol.skill_messages import SkillRecord, SkillRequest, SkillResult, SkillsChanged
from local.services.skills.skill import FILE_NAME
from local.services.skills.skill_library import FoundSkill, SkillLibrary
from local.tick import until_next_tick

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0  # between two looks at the folders


class SkillKeeper:
    """`library` is looked at in threads, as its folders may be slow."""

    publishes = (SkillsChanged,)

    def __init__(self, library: SkillLibrary) -> None:
        self.library = library
        self._ready: tuple[str, ...] = ()
        self._looking = asyncio.Lock()

    @property
    def has_any(self) -> bool:
        """Whether one was ready at the last look."""
        return bool(self._ready)

    async def look(self) -> SkillsChanged | None:
        """What is to be told, if there is something else than at the last look."""
        async with self._looking:
            if not await asyncio.to_thread(self.library.look):
                return None
            skills = await asyncio.to_thread(self.library.skills)
        for skill in skills:
            if skill.status == "broken":
                log.warning("the skill %s cannot be used: %s", skill.name, skill.error)
        self._ready = tuple(skill.name for skill in skills if skill.status == "ready")
        others = dict.fromkeys(skill.name for skill in skills if skill.name not in self._ready)
        return SkillsChanged(ready=self._ready, others=tuple(others))

    async def watch(self, tell: Callable[[SkillsChanged], Awaitable[Any]]) -> None:
        """Look at the folders every two seconds, and tell of what has changed; until it is cancelled."""
        while True:
            await asyncio.sleep(until_next_tick(time.monotonic(), LOOK_SECONDS))
            if (changed := await self.look()) is not None:
                await tell(changed)

    async def answer(self, request: SkillRequest) -> SkillResult:
        """What a respondent or a door is told."""
        try:
            return await asyncio.to_thread(self._answer, request)
        except (ToolError, ConfigError) as error:
            return SkillResult(verb=request.verb, error=ErrorInfo.of(error))

    def _answer(self, request: SkillRequest) -> SkillResult:
        places = tuple(str(place.folder) for place in self.library.places)
        skills = self.library.skills()
        if request.verb == "list":
            return SkillResult(verb="list", skills=tuple(map(self._whole_record, skills)), places=places)
        if request.verb == "ready":
            return SkillResult(verb="ready", skills=tuple(_record(each) for each in skills if each.status == "ready"))
        place, skill = self.library.skill(request.name)
        (found,) = (each for each in skills if each.folder == place.folder / skill.name)
        text, files = self.library.file(place, skill.name, FILE_NAME), self.library.files(place, skill.name)
        return SkillResult(verb="show", skills=(self._whole_record(found),), places=places, text=text, files=files)

    def _whole_record(self, skill: FoundSkill) -> SkillRecord:
        tools = self.library.tools_of(skill) if skill.status == "ready" else ""
        return _record(skill).model_copy(update={"tools": tools})


def _record(skill: FoundSkill) -> SkillRecord:
    fields = SkillRecord.model_fields.keys() - {"tools"}
    return SkillRecord.model_validate({name: getattr(skill, name) for name in fields} | {"folder": str(skill.folder)})
