"""The skills of all places: their format, which are ready and why others are not, approvals, and proposed changes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from local.core.config_file import ConfigFile
from local.core.config_file import settings_fault as fault
from local.core.errors import ConfigError, ToolError
from local.core.files import write_private
from local.core.front_matter import FENCE, split_front_matter
from local.core.versioned_text import TextHistory, TextProposals, VersionedText
from local.files.workspace import MOST_DEPTH, FileFacts, Workspace, WorkspacePath
from local.mcp.settings import FILE_NAME, MCPServerConfig, load_mcp_servers
from local.sandbox.process import PATH
from local.sandbox.sandbox import skill_path
from local.skills.messages import SkillDraft

# What the file SKILL.md of a skill says, in the open Agent Skills format (https://agentskills.io/specification).

SKILL_FILE_NAME = "SKILL.md"
MOST_BYTES = 200_000  # of SKILL.md: it is read whole, and what is longer belongs into references
MOST_NAME, MOST_DESCRIPTION, MOST_COMPATIBILITY = 64, 1024, 500
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+")


@dataclass(frozen=True, slots=True)
class Skill:
    """The content of a skill's SKILL.md, in the open Agent Skills format. `description` is one line of visible text,
    `body` the instructions; `programs` are those that `metadata.requires` names, without which it cannot be used.
    """

    name: str
    description: str
    body: str
    license: str = ""
    compatibility: str = ""
    programs: tuple[str, ...] = ()


def read_skill(name: str, content: bytes) -> Skill:
    """The skill in a folder of that name, whose SKILL.md holds `content`. Raises `ConfigError` with one line that says
    what is wrong, and where."""
    path = Path(one_line(name)) / SKILL_FILE_NAME
    if len(content) > MOST_BYTES:
        raise fault(path, None, f"larger than {MOST_BYTES // 1000} kB; move parts of it into references/")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(path, content.count(b"\n", 0, error.start) + 1, "not UTF-8 text") from None
    front = split_front_matter(path, text)
    fields = _Fields(front.settings)
    if not front.body:
        raise fault(path, None, "no instructions after the settings")
    _require_name(fields, name)
    return Skill(
        name=name,
        description=one_line(fields.text("description", MOST_DESCRIPTION)),
        body=front.body,
        license=one_line(fields.text("license", MOST_DESCRIPTION, needed=False)),
        compatibility=one_line(fields.text("compatibility", MOST_COMPATIBILITY, needed=False)),
        programs=_programs(fields),
    )


def one_line(text: str) -> str:
    """A text in one line, without what controls a terminal or cannot be seen."""
    return " ".join(_INVISIBLE.sub(" ", text).split())


class _Fields:
    """The settings in one SKILL.md. Keys that the format does not define are ignored, because other programs
    use them."""

    def __init__(self, settings: ConfigFile) -> None:
        self._settings = settings

    def fault(self, key: str, what: str) -> ConfigError:
        """The error that names the line of a key."""
        return fault(self._settings.path, self._settings.lines.get((key,)), f"{key}: {what}")

    def text(self, key: str, most: int, *, needed: bool = True) -> str:
        """A text with something in it, of at most so many characters."""
        found = self._settings.values.get(key)
        if found is None and not needed:
            return ""
        if found is None:
            raise self.fault(key, "is missing")
        if not isinstance(found, str) or not one_line(found):
            raise self.fault(key, "expected a text")
        if len(found) > most:
            raise self.fault(key, f"has {len(found)} characters; at most {most}")
        return found

    def metadata(self) -> dict[str, Any]:
        """Return the content of `metadata`."""
        found = self._settings.values.get("metadata")
        if found is not None and not isinstance(found, dict):
            raise self.fault("metadata", "expected keys and values below it")
        return found or {}


def _require_name(fields: _Fields, folder: str) -> None:
    name = fields.text("name", MOST_NAME)
    if not NAME.fullmatch(name):
        raise fields.fault("name", "expected lower-case letters, digits, and single hyphens between them")
    if name != folder:
        raise fields.fault("name", f"{name!r} is not the name of its folder, {one_line(folder)!r}; use one for both")


def _programs(fields: _Fields) -> tuple[str, ...]:
    requires = fields.metadata().get("requires", "")
    if not isinstance(requires, str):
        raise fields.fault("metadata", "requires: expected names of programs in one text, as in “git jq”")
    names = tuple(dict.fromkeys(requires.replace(",", " ").split()))
    for name in names:
        if not _PROGRAM.fullmatch(name):
            raise fields.fault("metadata", f"requires: {one_line(name)!r} is no name of a program")
    return names


# A folder in which skills lie.

PlaceKind = Literal["settings", "extra", "workspace"]
IN_SETTINGS = ("skills",)  # in the folder of settings: where the owner's own lie
MOST_SKILLS = 200  # in one place


@dataclass(frozen=True, slots=True)
class SkillPlace:
    """A folder that is searched for skills: `root` with the path `below` it; no link is followed below the root."""

    kind: PlaceKind
    root: Path
    below: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The path of the folder."""
        return self.root.joinpath(*self.below)

    @property
    def needs_approval(self) -> bool:
        """Whether others than the owner may write there."""
        return self.kind != "settings"

    def files(self) -> Workspace:
        """The way to its files."""
        return Workspace(self.root)

    def path(self, *names: str) -> WorkspacePath:
        """The path of something in it."""
        return WorkspacePath((*self.below, *names))

    def names(self) -> list[str]:
        """The names of the folders and links in it, sorted; none where there is no such place. What begins with a dot
        is none of ours."""
        try:
            found = list(self.files().entries(self.path()))
        except ToolError:
            return []
        names = (entry.path.rpartition("/")[2] for entry in found if entry.kind in ("folder", "link"))
        return sorted(name for name in names if not name.startswith("."))[:MOST_SKILLS]

    def within(self, name: str) -> Iterator[FileFacts]:
        """The files in the folder of a skill."""
        for entry in self.files().entries(self.path(name), MOST_DEPTH):
            if entry.kind == "file":
                yield entry

    def signature(self) -> tuple[object, ...]:
        """Return a value that changes when a skill is added, removed or edited."""
        return tuple((name, *self._state(name), *self._state(name, "SKILL.md")) for name in self._listed())

    def _listed(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))[: 2 * MOST_SKILLS]  # noqa: PTH208 - names alone, each second
        except OSError:
            return []

    def _state(self, *names: str) -> tuple[int, ...]:
        try:
            found = self.folder.joinpath(*names).lstat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


# Which skills of other places the owner has read and approved, and whether they are still the same.

APPROVALS_FILE_NAME = "approved-skills.json"
MOST_FILES, APPROVALS_MOST_BYTES = 500, 20_000_000  # of a skill that is to be approved


def contents_of(place: SkillPlace, name: str) -> dict[str, bytes]:
    """All files of a skill, read once, by their paths from its folder on; links are none. Raises `ToolError`, also for
    one that is too large to be looked through."""
    files, start = place.files(), len(str(place.path(name))) + 1
    contents = dict[str, bytes]()
    room = APPROVALS_MOST_BYTES
    for entry in place.within(name):
        contents[entry.path[start:]] = found = files.read(files.path(entry.path), room)
        room -= len(found)
        if len(contents) > MOST_FILES:
            raise ToolError(f"{name} has more than {MOST_FILES} files", kind="too_large")
    return contents


def digest_of(contents: Mapping[str, bytes]) -> str:
    """The SHA-256 of the names and contents of files."""
    listed = [(path, hashlib.sha256(content).hexdigest()) for path, content in sorted(contents.items())]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


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


# A skill that brings servers of tools, in `mcp.json` beside its SKILL.md.

Leave = Literal["approved", "changed since it was approved", "not approved"]
WORKSPACE_FOLDER = ".local2"
HERE = "./"  # before a path that counts from the skill's folder


@dataclass(frozen=True, slots=True)
class ServingSkill:
    """A skill that may bring tool servers, as it was read from `folder`: `digest` is the SHA-256 of all of its
    files."""

    folder: Path
    digest: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read the skill. Raises `ConfigError` if the folder is not a skill, or is in a workspace."""
        real = folder.resolve()
        if WORKSPACE_FOLDER in real.parts:
            raise ConfigError(f"{real} is in a workspace, where skills cannot bring tools: copy it to your own")
        try:
            contents = contents_of(SkillPlace("extra", real.parent), real.name)
        except ToolError as error:
            raise ConfigError(str(error)) from None
        read_skill(real.name, contents.get(SKILL_FILE_NAME, b""))
        return cls(real, digest_of(contents))

    def servers(self) -> dict[str, MCPServerConfig]:
        """The servers that the skill brings, by the names that your own `mcp.json` has for them: none without the file.
        Raises `ConfigError`, also for what a skill cannot have: a url, a network, folders, secrets, another level."""
        found = load_mcp_servers(self.folder)
        alone = len(found) == 1
        return {
            self.folder.name if alone else f"{self.folder.name}-{name}": self._held(name, server)
            for name, server in found.items()
        }

    def leave(self, own: dict[str, MCPServerConfig]) -> Leave | None:
        """Return the approval state of its servers, by the entries in the owner's `mcp.json`; None for a skill without
        servers. Raises as `servers` does.
        """
        servers = self.servers()
        if not servers:
            return None
        seen = {own[name].skill_digest if name in own and own[name].skill == self.folder else "" for name in servers}
        if seen == {self.digest}:
            return "approved"
        return "changed since it was approved" if any(seen) else "not approved"

    def require(self) -> None:
        """Raise `ToolError` (not_approved) if the skill has changed since it was read."""
        try:
            is_same = type(self).of(self.folder) == self
        except ConfigError:
            is_same = False
        if not is_same:
            text = f"the skill {self.folder.name} is not as it was approved: look at it with `local2 skills tools"
            raise ToolError(f"{text} {self.folder}`", kind="not_approved")

    def _held(self, name: str, server: MCPServerConfig) -> MCPServerConfig:
        unheld = server.model_fields_set - {"type", "command", "args", "env", "timeout_seconds", "start_seconds"}
        if unheld:
            raise ConfigError(f"{self.folder / FILE_NAME}: {name}.{min(unheld)}: a skill's server has none")
        said = [server.command, *server.args, *server.env.values()]
        if any("${" in text or text.startswith("secret:") for text in said):
            raise ConfigError(f"{self.folder / FILE_NAME}: {name}: a skill's server gets no variables and no secrets")
        return server.model_copy(update={
            "command": self._place(server.command),
            "args": tuple(map(self._place, server.args)),
            "skill": self.folder,
            "skill_digest": self.digest,
        })  # fmt: skip

    def _place(self, word: str) -> str:
        inside = skill_path(self.folder.name, self.folder)
        return f"{inside}/{word.removeprefix(HERE)}" if word.startswith(HERE) else word


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
    """The whole of SKILL.md for a draft; of an existing one, `before`, only the instructions change. Raises
    `ConfigError` for what would be no skill."""
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
        """All that there are, by name."""
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
        """Have the file hold that; without any text there is no such file. Raises `OSError` and `ConfigError`."""
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


# The skills of which a change was proposed, each with its versions in a folder of the data directory.

FOLDER = "skills"  # in the data directory
PLACE_FILE = "folder"  # says where the skill lies


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
        versions = self._folder / draft.name
        skill = SkillText(folder or own, self._settings, versions)
        wanted = skill_text(draft, skill.text())
        try:
            versions.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(versions / PLACE_FILE, f"{skill.folder}\n")
        except OSError as error:
            raise ConfigError(f"{versions / PLACE_FILE} cannot be written: {error.strerror}") from None
        return TextProposals(skill).propose(wanted, by)
