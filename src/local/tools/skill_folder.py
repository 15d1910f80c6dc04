"""The folder of a skill: the content of its SKILL.md, its files, and its tool servers."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from local.core.config_file import ConfigFile
from local.core.config_file import settings_fault as fault
from local.core.errors import ConfigError, ToolError
from local.core.front_matter import split_front_matter
from local.core.mcp_servers import FILE_NAME, MCPServerConfig, mcp_servers_in
from local.core.workspace import MOST_DEPTH, FileFacts, Workspace, WorkspacePath
from local.sandbox.sandbox import skill_path

# The content of a skill's SKILL.md, in the open Agent Skills format (https://agentskills.io/specification).

SKILL_FILE_NAME = "SKILL.md"
MOST_BYTES = 200_000  # of SKILL.md: it is read whole, and more belongs into references
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
    """Return the skill in a folder of that name, whose SKILL.md has this `content`. Raises `ConfigError` with one line
    that names the error and its place.
    """
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
    """Return a text as one line, without control and invisible characters."""
    return " ".join(_INVISIBLE.sub(" ", text).split())


class _Fields:
    """The settings of one SKILL.md. Those that the format does not have are left alone, as other programs use them."""

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
        """Return the entries under `metadata`."""
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
    """A folder in which skills may be: `root` with the names `below` it, each of which is a folder; below the root no
    link is followed.
    """

    kind: PlaceKind
    root: Path
    below: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Return the folder's path."""
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
        """Return the names of the folders and links in it, sorted; none if there is no such place. Names that begin
        with a dot are ignored.
        """
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
        """Return a value that changes when a skill is added, removed or changed."""
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


MOST_FILES, APPROVALS_MOST_BYTES = 500, 20_000_000  # of a skill that is to be approved


def contents_of(place: SkillPlace, name: str) -> dict[str, bytes]:
    """Return all files of a skill, read once, by their paths relative to its folder; without links. Raises `ToolError`,
    also for one that is too large.
    """
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


# A skill that brings servers of tools, in `mcp.json` beside its SKILL.md.

Leave = Literal["approved", "changed since it was approved", "not approved"]
WORKSPACE_FOLDER = ".local2"
HERE = "./"  # before a path that counts from the skill's folder


@dataclass(frozen=True, slots=True)
class ServingSkill:
    """A skill that may bring tool servers, as it was seen once in `folder`: `digest` is the SHA-256 of all of its
    files."""

    folder: Path
    digest: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the present skill. Raises `ConfigError` for an invalid one, and for one in a workspace."""
        real = folder.resolve()
        if WORKSPACE_FOLDER in real.parts:
            raise ConfigError(f"{real} is in a workspace, where a skill cannot bring tools: copy it to your own")
        try:
            contents = contents_of(SkillPlace("extra", real.parent), real.name)
        except ToolError as error:
            raise ConfigError(str(error)) from None
        read_skill(real.name, contents.get(SKILL_FILE_NAME, b""))
        return cls(real, digest_of(contents))

    def servers(self) -> dict[str, MCPServerConfig]:
        """Return the servers of the skill, by their names in your own `mcp.json`: none without the file. Raises
        `ConfigError`, also for settings that a skill's server cannot have: a url, a network, folders, secrets, another
        level.
        """
        found = self._found()
        alone = len(found) == 1
        return {
            self.folder.name if alone else f"{self.folder.name}-{name}": self._held(name, server)
            for name, server in found.items()
        }

    def _found(self) -> dict[str, MCPServerConfig]:
        """Return the content of the file, which is not a link or a pipe: those are never approved."""
        place = SkillPlace("extra", self.folder.parent)
        try:
            content = place.files().read(place.path(self.folder.name, FILE_NAME), MOST_BYTES)
        except ToolError as error:
            if error.kind == "not_found":
                return {}
            raise ConfigError(f"{self.folder / FILE_NAME} cannot be read: {error}") from None
        return mcp_servers_in(self.folder / FILE_NAME, content)

    def leave(self, own: dict[str, MCPServerConfig]) -> Leave | None:
        """Return the approval of its servers, by their names in your own `mcp.json`; None for a skill without servers.
        Raises as `servers` does.
        """
        servers = self.servers()
        if not servers:
            return None
        seen = {own[name].skill_digest if name in own and own[name].skill == self.folder else "" for name in servers}
        if seen == {self.digest}:
            return "approved"
        return "changed since it was approved" if any(seen) else "not approved"

    def require(self) -> None:
        """Raises `ToolError` (not_approved) unless it is still as it was seen."""
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
