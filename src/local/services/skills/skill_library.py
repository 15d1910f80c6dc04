"""The skills that there are, from all places, and what each of them is worth: ready, or why not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from local.errors import ConfigError, ToolError
from local.services.sandbox.launch import PATH
from local.services.skills.serving_skill import tools_of
from local.services.skills.skill import FILE_NAME, MOST_BYTES, NAME, Skill, one_line, read_skill
from local.services.skills.skill_approval_book import SkillApprovalBook, contents_of
from local.services.skills.skill_place import PlaceKind, SkillPlace
from local.services.workspace.workspace_path import WorkspacePath

SkillStatus = Literal["ready", "broken", "incomplete", "unapproved", "hidden"]
MOST_FILE_BYTES = 2_000_000
MOST_FILES = 50  # that are named
SHOWN_NAME = 80


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A folder in which a skill should be. Of one that is not `ready`, `error` says why in one line: it is broken, it
    is incomplete without the programs in `missing`, the owner has not approved it as it is now, or one of its name in
    an earlier place hides it."""

    name: str
    place: PlaceKind
    folder: Path
    status: SkillStatus
    description: str = ""
    error: str = ""
    missing: tuple[str, ...] = ()
    compatibility: str = ""
    license: str = ""


class SkillLibrary:
    """Looks at the places anew each time; an earlier place goes first. What lies in a place where others may write is
    used only as its owner has approved it."""

    def __init__(self, places: Callable[[], Sequence[SkillPlace]], approvals: SkillApprovalBook) -> None:
        self._places, self._approvals = places, approvals
        self._seen: object = None

    @property
    def places(self) -> Sequence[SkillPlace]:
        """The places that there are now."""
        return self._places()

    def look(self) -> bool:
        """Whether there is something else than at the last look."""
        seen = self._seen
        self._seen = ([(place, place.signature()) for place in self.places], self._approvals.signature())
        return seen != self._seen

    def skills(self) -> list[FoundSkill]:
        """All that there are, by name."""
        taken: dict[str, FoundSkill] = {}
        found = list[FoundSkill]()
        for place in self.places:
            for skill in self._of(place):
                first = taken.get(skill.name)
                if first is not None and skill.status == "ready":
                    skill = replace(skill, status="hidden", error=f"there is one of that name in {first.folder.parent}")
                elif skill.status == "ready":
                    taken[skill.name] = skill
                found.append(skill)
        return sorted(found, key=lambda skill: skill.name)

    def ready(self) -> list[FoundSkill]:
        """The skills that can be used."""
        return [skill for skill in self.skills() if skill.status == "ready"]

    def skill(self, name: str) -> tuple[SkillPlace, Skill]:
        """A skill that is ready, as it stands there now, and where. Raises `ToolError` (not_found, conflict)."""
        why = ""
        for place in self.places:
            if NAME.fullmatch(name) and name in place.names():
                skill, found = self._read(place, name)
                if skill is not None and found.status == "ready":
                    return place, skill
                why = why or found.error
        if why:
            raise ToolError(f"the skill {name} cannot be used: {why}", kind="conflict")
        known = ", ".join(skill.name for skill in self.ready()) or "none"
        raise ToolError(f"there is no skill {one_line(name)[:SHOWN_NAME]!r}; there are: {known}", kind="not_found")

    def tools_of(self, skill: FoundSkill) -> str:
        """What stands with the tools that a skill brings; see `tools_of`."""
        return tools_of(skill.folder, self._approvals.settings)

    def files(self, place: SkillPlace, name: str) -> tuple[str, ...]:
        """The files of a skill beside SKILL.md, from its folder on."""
        start = len(str(place.path(name))) + 1
        paths = (entry.path[start:] for entry in place.within(name))
        return tuple(path for path in paths if path != FILE_NAME)[:MOST_FILES]

    def file(self, place: SkillPlace, name: str, path: str) -> str:
        """The text of a file of a skill. Raises `ToolError`: conflict for one that is not approved; outside, link,
        not_found, not_text and so on."""
        parts = WorkspacePath.parse(path).parts
        if place.needs_approval:
            contents = contents_of(place, name)
            if why := self._approvals.fault(place.folder / name, contents):
                raise ToolError(f"the skill {name} cannot be used: {why}", kind="conflict")
            if "/".join(parts) not in contents:
                raise ToolError(f"the skill {name} has no file {one_line(path)[:SHOWN_NAME]!r}", kind="not_found")
            content = contents["/".join(parts)][:MOST_FILE_BYTES]
        else:
            content = place.files().read(place.path(name, *parts), MOST_FILE_BYTES)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = f"{one_line(path)[:SHOWN_NAME]} is no text; only scripts can use it"
            raise ToolError(text, kind="not_text") from None

    def _of(self, place: SkillPlace) -> Iterator[FoundSkill]:
        for name in place.names():
            yield self._read(place, name)[1]

    def _read(self, place: SkillPlace, name: str) -> tuple[Skill | None, FoundSkill]:
        found = FoundSkill(one_line(name)[:SHOWN_NAME], place.kind, place.folder / name, "broken")
        try:
            content, unapproved = self._content(place, name)
            skill = read_skill(name, content)
        except (ConfigError, ToolError) as error:
            return None, replace(found, error=one_line(str(error)))
        found = replace(found, description=skill.description, compatibility=skill.compatibility, license=skill.license)
        if unapproved:
            return skill, replace(found, status="unapproved", error=unapproved)
        missing = tuple(program for program in skill.programs if shutil.which(program, path=PATH) is None)
        if missing:
            why = f"not installed: {', '.join(missing)}"
            return skill, replace(found, status="incomplete", error=why, missing=missing)
        return skill, replace(found, status="ready")

    def _content(self, place: SkillPlace, name: str) -> tuple[bytes, str]:
        """What SKILL.md holds, and why it may not be used if so."""
        if not place.needs_approval:
            return place.files().read(place.path(name, FILE_NAME), MOST_BYTES), ""
        contents = contents_of(place, name)
        if FILE_NAME not in contents:
            raise ToolError(f"{name} has no {FILE_NAME}", kind="not_found")
        return contents[FILE_NAME], self._approvals.fault(place.folder / name, contents)
