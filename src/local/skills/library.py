"""The skills of all places: their format, which are ready and why others are not, approvals, and proposed changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from local.core.errors import ConfigError, ToolError
from local.core.files import write_private
from local.core.front_matter import FENCE
from local.core.mcp_servers import FILE_NAME, load_mcp_servers
from local.core.versioned_text import TextHistory, TextProposals, VersionedText
from local.core.workspace import WorkspacePath
from local.sandbox.process import PATH
from local.skills.messages import SkillDraft
from local.tools.skill_folder import (
    IN_SETTINGS,
    MOST_BYTES,
    MOST_DESCRIPTION,
    MOST_NAME,
    NAME,
    SKILL_FILE_NAME,
    PlaceKind,
    ServingSkill,
    Skill,
    SkillPlace,
    contents_of,
    digest_of,
    one_line,
    read_skill,
)

# Which skills of other places the owner has read and approved, and whether they are still the same.

APPROVALS_FILE_NAME = "approved-skills.json"


class SkillApprovalBook:
    """The owner's approvals of skills in shared places: `approved-skills.json` in the settings folder, read for each
    check, with a digest for each folder.
    """

    def __init__(self, settings: Path) -> None:
        self.settings, self._path = settings, settings / APPROVALS_FILE_NAME

    def fault(self, folder: Path, contents: Mapping[str, bytes]) -> str:
        """Why a skill may not be used; empty if it is the one that was approved."""
        try:
            approved = self._all().get(str(folder.resolve()))
        except ConfigError as error:
            return str(error)
        if approved == digest_of(contents):
            return ""
        why = "not approved" if approved is None else "not as it was approved"
        return f"{why}: read it with `local2 skills approve {folder}`"

    def approve(self, folder: Path, contents: Mapping[str, bytes]) -> None:
        """Approve the skill in its present version. Raises `ConfigError`."""
        approved = {**self._all(), str(folder.resolve()): digest_of(contents)}
        try:
            write_private(self._path, json.dumps(approved, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None

    def signature(self) -> tuple[int, ...]:
        """Return a value that changes when the approvals change."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns

    def _all(self) -> dict[str, str]:
        try:
            return {str(folder): str(digest) for folder, digest in json.loads(self._path.read_text("utf-8")).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError):
            text = "delete it, and approve each skill again"
            raise ConfigError(f"{self._path} cannot be read: {text}") from None


def tools_of(folder: Path, settings: Path) -> str:
    """Return the state of a skill's tools: their approval in that settings folder, or why they cannot be used; empty
    for a skill without tools.
    """
    if not (folder / FILE_NAME).exists():
        return ""
    try:
        return ServingSkill.of(folder).leave(load_mcp_servers(settings)) or ""
    except ConfigError as error:
        return str(error)


def skill_text(draft: SkillDraft, before: str = "") -> str:
    """Return the whole of SKILL.md for a draft; of an existing one, `before`, only the instructions change. Raises
    `ConfigError` for an invalid skill.
    """
    text = f"{_settings_of(before) or _new_settings(draft)}\n{draft.instructions.strip()}"
    read_skill(draft.name, text.encode())
    return text


def _new_settings(draft: SkillDraft) -> str:
    said = one_line(draft.description)[:MOST_DESCRIPTION].replace('"', "'").replace("\\", "/")
    return f'{FENCE}\nname: {draft.name}\ndescription: "{said}"\n{FENCE}\n'


def _settings_of(text: str) -> str:
    """Return the settings before the instructions; empty if there are none."""
    lines = text.splitlines()
    fences = [number for number, line in enumerate(lines) if line.rstrip() == FENCE]
    return "\n".join([*lines[: fences[1] + 1], ""]) if len(fences) > 1 else ""


SkillStatus = Literal["ready", "broken", "incomplete", "unapproved", "hidden"]
MOST_FILE_BYTES = 2_000_000
SKILL_LIBRARY_MOST_FILES = 50  # that are named
SHOWN_NAME = 80


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A folder that should contain a skill. If it is not `ready`, `error` gives the reason in one line: it is broken,
    incomplete without the programs in `missing`, not approved in its present version, or hidden by a skill of the same
    name in an earlier place.
    """

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
    """The skills in all places, read again for each request; earlier places take precedence. A skill in a place where
    others may write is used only as its owner has approved it.
    """

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
        """Return all skills, by name."""
        taken: dict[str, FoundSkill] = {}
        found = list[FoundSkill]()
        for place in self.places:
            for skill in self._of(place):
                first = taken.get(skill.name)
                if first is not None and skill.status == "ready":
                    skill = replace(
                        skill, status="hidden", error=f"there is a skill of that name in {first.folder.parent}"
                    )
                elif skill.status == "ready":
                    taken[skill.name] = skill
                found.append(skill)
        return sorted(found, key=lambda skill: skill.name)

    def ready(self) -> list[FoundSkill]:
        """The skills that can be used."""
        return [skill for skill in self.skills() if skill.status == "ready"]

    def skill(self, name: str) -> tuple[SkillPlace, Skill]:
        """Return a usable skill in its present version, and its folder. Raises `ToolError` (not_found, conflict)."""
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
        """Return the state of a skill's tools; see `tools_of`."""
        return tools_of(skill.folder, self._approvals.settings)

    def files(self, place: SkillPlace, name: str) -> tuple[str, ...]:
        """The files of a skill beside SKILL.md, from its folder on."""
        start = len(str(place.path(name))) + 1
        paths = (entry.path[start:] for entry in place.within(name))
        return tuple(path for path in paths if path != SKILL_FILE_NAME)[:SKILL_LIBRARY_MOST_FILES]

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
            text = f"{one_line(path)[:SHOWN_NAME]} is not text; only scripts can use it"
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
        """Return the content of SKILL.md, and the reason why it must not be used, if any."""
        if not place.needs_approval:
            return place.files().read(place.path(name, SKILL_FILE_NAME), MOST_BYTES), ""
        contents = contents_of(place, name)
        if SKILL_FILE_NAME not in contents:
            raise ToolError(f"{name} has no {SKILL_FILE_NAME}", kind="not_found")
        return contents[SKILL_FILE_NAME], self._approvals.fault(place.folder / name, contents)


# SKILL.md of one skill, with its versions.


class SkillText(VersionedText):
    """The SKILL.md of one skill, with its versions. In a shared place a change counts as approved if the previous
    content was approved.
    """

    def __init__(self, folder: Path, settings: Path, versions: Path) -> None:
        super().__init__(folder / SKILL_FILE_NAME, TextHistory(versions, f"the skill {folder.name}"))
        self.folder, self._approvals = folder, SkillApprovalBook(settings)
        self._is_owners = folder.parent.resolve() == settings.joinpath(*IN_SETTINGS).resolve()

    def write(self, text: str) -> None:
        """Write the text to the file; without text the file is removed. Raises `OSError` and `ConfigError`."""
        others = {} if self._is_owners else self._approved()
        if text:
            super().write(text)
        else:
            self.path.unlink(missing_ok=True)
            with suppress(OSError):  # it holds other files
                self.folder.rmdir()
        if text and not self._is_owners:
            self._approvals.approve(self.folder, {**others, SKILL_FILE_NAME: f"{text}\n".encode()})

    def _approved(self) -> dict[str, bytes]:
        """All files of the skill, as the owner has approved them."""
        try:
            contents = contents_of(SkillPlace("extra", self.folder.parent), self.folder.name)
        except ToolError as error:
            raise ConfigError(str(error)) from None
        if why := self._approvals.fault(self.folder, contents):
            raise ConfigError(f"{self.history.what} is {why}")
        return contents


# The proposed changes of skills, each with its versions in a folder of the data directory.

FOLDER = "skills"  # in the data directory
PLACE_FILE = "folder"  # contains the skill's path


class SkillProposalBook:
    """The skills for which a change was proposed, by name, each with its versions in a folder of the data directory,
    which is not searched for skills.
    """

    def __init__(self, settings: Path, data_dir: Path) -> None:
        self._settings, self._folder = settings, data_dir / FOLDER

    def names(self) -> list[str]:
        """The names of the skills, sorted."""
        return sorted(path.parent.name for path in self._folder.glob(f"*/{PLACE_FILE}"))

    def text(self, name: str) -> SkillText:
        """The text of one skill. Raises `ConfigError`."""
        if name not in self.names():
            known = ", ".join(self.names()) or "none"
            named = one_line(name)[:MOST_NAME]
            raise ConfigError(f"no change of a skill {named!r} was ever proposed; there were of: {known}")
        try:
            folder = Path((self._folder / name / PLACE_FILE).read_text(encoding="utf-8").rstrip("\n"))
        except (OSError, ValueError):
            folder = Path()
        if folder.name != name:
            raise ConfigError(f"{self._folder / name / PLACE_FILE} cannot be read; delete the folder it is in")
        return SkillText(folder, self._settings, self._folder / name)

    def propose(self, draft: SkillDraft, folder: Path | None, by: str) -> bool:
        """Whether there was something to propose, of the skill in that folder or, without one, of a new skill among the
        owner's. Raises `ConfigError`."""
        if not NAME.fullmatch(draft.name) or len(draft.name) > MOST_NAME:
            raise ConfigError(f"{one_line(draft.name)[:MOST_NAME]!r} cannot be a skill's name")
        own = self._settings.joinpath(*IN_SETTINGS, draft.name)
        if folder is None and own.exists():
            raise ConfigError(f"{own} already exists, and is not a usable skill")
        skill = SkillText(folder or own, self._settings, self._folder / draft.name)
        wanted = skill_text(draft, skill.text())
        self._keep(skill)
        return TextProposals(skill).propose(wanted, by)

    def own(self, name: str) -> SkillText:
        """The text of a skill in the owner's settings, whose versions are kept from now on. Raises `ConfigError`."""
        folder = self._settings.joinpath(*IN_SETTINGS, name)
        if not NAME.fullmatch(name) or not (folder / SKILL_FILE_NAME).is_file():
            raise ConfigError(f"there is no skill {one_line(name)[:MOST_NAME]!r} in your settings")
        skill = SkillText(folder, self._settings, self._folder / name)
        if name not in self.names():
            self._keep(skill)
        elif self.text(name).folder != folder:
            raise ConfigError(f"{skill.history.folder} has the versions of another skill {name!r}; move it away")
        return skill

    def _keep(self, skill: SkillText) -> None:
        """Have the versions of a skill kept."""
        place = skill.history.folder / PLACE_FILE
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(place, f"{skill.folder}\n")
        except OSError as error:
            raise ConfigError(f"{place} cannot be written: {error.strerror}") from None
