"""The tool that reads a skill, the service that holds the skills, and how a skill is made and checked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from local.bus.message import ErrorInfo
from local.core.config import Settings
from local.core.errors import ConfigError, ToolError
from local.core.files import until_next_tick
from local.core.mcp_servers import MCPServerConfig
from local.core.versioned_text import VersionedText
from local.runtime.participant import Resources
from local.sandbox.sandbox import skill_path
from local.skills.library import FoundSkill, SkillApprovalBook, SkillLibrary, SkillProposalBook, tools_of
from local.skills.messages import READ_SKILL, SkillDraft, SkillRecord, SkillRequest, SkillResult, SkillsChanged
from local.tools.skill_folder import (
    IN_SETTINGS,
    MOST_DESCRIPTION,
    MOST_NAME,
    NAME,
    ServingSkill,
    SkillPlace,
    contents_of,
    one_line,
    read_skill,
)
from local.tools.skill_folder import SKILL_FILE_NAME as FILE_NAME
from local.tools.tool import Tool

# The tool that reads a skill: its instructions, or one of its files.


class ReadSkillTool(Tool):
    """Read the instructions of a skill before you do what it is for; then do as it says. With file, read one of the
    files that it names."""

    name = READ_SKILL
    safety = "L0"
    category = "read"
    trusted = True  # a skill is the owner's word, wherever the owner got it

    def __init__(self, config: Settings, library: SkillLibrary) -> None:
        super().__init__(config)
        self._library = library

    async def run(
        self,
        name: Annotated[str, "The skill, by the name in the list of skills"],
        file: Annotated[str, "One of its files, counted from its folder; empty for its instructions"] = "",
    ) -> str:
        """The text."""
        self.require_owner()
        try:
            return await asyncio.to_thread(self._text, name, file)
        except ToolError as error:
            is_strange = error.kind == "conflict"  # it is not approved, or broken: the reason may repeat its content
            raise ToolError(str(error), kind=error.kind, tainted=is_strange) from None

    def _text(self, name: str, file: str) -> str:
        place, skill = self._library.skill(name)
        if file:
            return self._library.file(place, name, file)
        files = ", ".join(self._library.files(place, name))
        if not files:
            return skill.body
        folder = place.folder / name
        where = folder if place.kind == "workspace" else skill_path(name, folder)
        return f"{skill.body}\n\n(Its files: {files}. Commands find them below {where}.)"


TEXT = """---
name: {name}
description: {description}
---

# {title}

1. What to do first.
2. What to do then.

Longer texts go into references/, programs into scripts/: name them here by their paths.
"""


@dataclass(frozen=True, slots=True)
class SkillCheck:
    """The result of checking the folder of a skill: `fault` is empty for a usable skill, `tools` for one without
    tools; otherwise `tools` says whether they were approved.
    """

    folder: Path
    fault: str
    tools: str = ""


def new_skill(settings: Path, name: str, description: str) -> Path:
    """Make a skill to be written on; returns its SKILL.md. Raises `ConfigError`."""
    if not NAME.fullmatch(name) or len(name) > MOST_NAME:
        text = f"lower-case letters, digits and single hyphens between them, at most {MOST_NAME}"
        raise ConfigError(f"{one_line(name)!r} cannot be a skill's name: {text}")
    said = one_line(description)[:MOST_DESCRIPTION].replace('"', "'").replace("\\", "/")
    file = settings.joinpath(*IN_SETTINGS, name) / FILE_NAME
    try:
        file.parent.mkdir(parents=True)
        file.write_text(TEXT.format(name=name, description=f'"{said}"', title=name.replace("-", " ").capitalize()))
    except FileExistsError:
        raise ConfigError(f"{file.parent} already exists") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be made: {error.strerror}") from None
    return file


def checked(folders: list[Path], settings: Path) -> list[SkillCheck]:
    """Each of those folders, or all in the folder of settings."""
    named = [folder.absolute() for folder in folders]
    if not named:
        place = SkillPlace("settings", settings, IN_SETTINGS)
        named = [place.folder / name for name in place.names()]
    return [_checked(folder, settings) for folder in named]


def _checked(folder: Path, settings: Path) -> SkillCheck:
    place = SkillPlace("settings", folder.parent)  # whether it is approved is another question
    library = SkillLibrary(lambda: [place], SkillApprovalBook(folder))
    found = [skill for skill in library.skills() if skill.folder == folder]
    if not found:
        return SkillCheck(folder, "there is no such folder")
    error = found[0].error
    return SkillCheck(folder, error, "" if error else tools_of(folder, settings))


def servers_of(folder: Path) -> dict[str, MCPServerConfig]:
    """Return the tool servers that a skill brings, by their names in the owner's `mcp.json`. Raises `ConfigError` if
    the folder is not a skill, or a server is not allowed.
    """
    return ServingSkill.of(folder).servers()


def to_approve(folder: Path) -> dict[str, bytes]:
    """Return everything that is approved with a skill, by the paths of its files. Raises `ConfigError` if the folder
    is not a skill.
    """
    place, name = SkillPlace("extra", folder.resolve().parent), folder.resolve().name
    try:
        contents = contents_of(place, name)
    except ToolError as error:
        raise ConfigError(str(error)) from None
    read_skill(name, contents.get(FILE_NAME, b""))
    return contents


def approve(settings: Path, folder: Path, contents: dict[str, bytes]) -> None:
    """Have a skill used for as long as it holds this. Raises `ConfigError`."""
    SkillApprovalBook(settings).approve(folder, contents)


# The skill service: answers requests about skills, and publishes their changes.

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0  # between two looks at the folders


class SkillService:
    """The skills of a participant, which answers requests for them and publishes changes. `library` is read in
    threads, because its folders may be slow; without `proposals` no change of a skill can be proposed.
    """

    publishes = (SkillsChanged,)
    tools = (ReadSkillTool,)

    def __init__(self, library: SkillLibrary, proposals: SkillProposalBook | None = None) -> None:
        self.library, self._proposals = library, proposals
        self._ready: tuple[str, ...] = ()
        self._looking = asyncio.Lock()

    @classmethod
    def build(cls, named: tuple[Path, ...], resources: Resources, is_trusted: Callable[[], bool]) -> SkillService:
        """The skills in the folders that the owner names and in the usual places. Raises `ConfigError`."""
        settings = resources.layers[-1] if resources.layers else resources.data_dir / "no-settings"
        places = SkillPlaces(settings, named, resources.workspace_folder, is_trusted)
        proposals = SkillProposalBook(settings, resources.data_dir) if resources.layers else None
        return cls(SkillLibrary(places, SkillApprovalBook(settings)), proposals)

    @property
    def has_any(self) -> bool:
        """Whether one was ready at the last look."""
        return bool(self._ready)

    async def look(self) -> SkillsChanged | None:
        """Return the change to publish, if the skills have changed since the last look."""
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
        """Check the folders every two seconds and publish changes, until cancelled."""
        while True:
            await asyncio.sleep(until_next_tick(time.monotonic(), LOOK_SECONDS))
            if (changed := await self.look()) is not None:
                await tell(changed)

    async def answer(self, request: SkillRequest) -> SkillResult:
        """The answer to a respondent, a frontend or the dreamer."""
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
        if request.verb == "propose":
            return SkillResult(verb="propose", proposed=self._propose(request, skills))
        place, skill = self.library.skill(request.name)
        (found,) = (each for each in skills if each.folder == place.folder / skill.name)
        text, files = self.library.file(place, skill.name, FILE_NAME), self.library.files(place, skill.name)
        return SkillResult(verb="show", skills=(self._whole_record(found),), places=places, text=text, files=files)

    def _propose(self, request: SkillRequest, skills: list[FoundSkill]) -> bool:
        if self._proposals is None:
            raise ConfigError("this participant accepts no proposals for skills")
        folders = {skill.name: skill.folder for skill in skills if skill.status == "ready"}
        draft = SkillDraft(request.name, request.description, request.instructions)
        return self._proposals.propose(draft, folders.get(request.name), request.by)

    def _whole_record(self, skill: FoundSkill) -> SkillRecord:
        tools = self.library.tools_of(skill) if skill.status == "ready" else ""
        return _record(skill).model_copy(update={"tools": tools})


def _record(skill: FoundSkill) -> SkillRecord:
    fields = SkillRecord.model_fields.keys() - {"tools"}
    return SkillRecord.model_validate({name: getattr(skill, name) for name in fields} | {"folder": str(skill.folder)})


IN_WORKSPACE = (".local2", "skills")


class SkillPlaces:
    """The folders that are searched for skills, in this order: the settings folder, the folders that the owner names,
    and the workspace as long as it `is_trusted`. Raises `ConfigError` for a named folder in the workspace, where the
    model may write.
    """

    def __init__(
        self, settings: Path, named: tuple[Path, ...], workspace: Path, is_trusted: Callable[[], bool] = lambda: False
    ) -> None:
        self._settings, self._workspace, self._is_trusted = settings, workspace, is_trusted
        self._named = [SkillPlace("extra", folder.expanduser()) for folder in named]
        for place in self._named:
            if place.root.resolve().is_relative_to(workspace.resolve()):
                raise ConfigError(f"files.yaml: skill_folders: {place.root} is in the workspace; choose one outside")

    def __call__(self) -> list[SkillPlace]:
        """The places that there are now."""
        places = [SkillPlace("settings", self._settings, IN_SETTINGS), *self._named]
        return [*places, SkillPlace("workspace", self._workspace, IN_WORKSPACE)] if self._is_trusted() else places


# The proposed changes of skills, for those who decide about them.


def skill_text(settings: Path, data_dir: Path, name: str) -> VersionedText:
    """SKILL.md of one skill. Raises `ConfigError`."""
    return SkillProposalBook(settings, data_dir).text(name)


def skill_texts(settings: Path, data_dir: Path) -> list[VersionedText]:
    """SKILL.md of each skill, by name. Raises `ConfigError`."""
    skills = SkillProposalBook(settings, data_dir)
    return [skills.text(name) for name in skills.names()]
