"""Which profiles there are: the owner's, those of a trusted workspace, and those that are built in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, StringConstraints, ValidationError

from local.core.config import Settings
from local.core.config_file import ConfigFile, faults, suggestion
from local.core.config_file import settings_fault as fault
from local.core.errors import BadRequest, ConfigError
from local.core.files import write_private
from local.core.front_matter import FENCE, split_front_matter
from local.core.trust import AGENTS, FOLDER, MOST_PROFILES, SUFFIX, TrustRegistry
from local.core.versioned_text import read_text

# A profile of the assistant, with the tools that it may use: Markdown with settings before it.

EVERY_TOOL = "*"
MOST_TOOLS = 128
RESERVED = frozenset({"remember"})  # a model's name at /v1 that means something else

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1024)]
ToolName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_-]{1,64}|\*)$")]
ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@-]{0,199}$")]


class ProfileSettings(Settings):
    """The header of a profile's file; docs/how-to/instructions-and-profiles.md explains each key."""

    name: Name
    description: Line
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=MOST_TOOLS)]
    model: ModelName | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    instructions: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class AssistantProfile:
    """A named set of tools, a model and instructions. `tools` are those that the model is offered at most, None for no
    limit; `origin` is its file. `shared` says whether other users than the owner may answer by it.
    """

    name: str
    description: str
    tools: tuple[str, ...] | None
    instructions: str = ""
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    origin: str = "built in"
    shared: bool = False


def parse_profile(path: Path, text: str) -> AssistantProfile:
    """Return a profile from a file's text. Raises `ConfigError`, one line that names file, line, key and fault."""
    front = split_front_matter(path, text)
    try:
        said = ProfileSettings.model_validate_json(json.dumps(front.settings.values, default=str), strict=True)
    except ValidationError as error:
        raise _fault(front.settings, error) from None
    if said.name in RESERVED:
        raise fault(path, front.settings.lines["name",], f"name: {said.name} is taken; choose another")
    return AssistantProfile(
        name=said.name,
        description=" ".join(said.description.split()),
        tools=None if EVERY_TOOL in said.tools else said.tools,
        instructions="\n\n".join(filter(None, (said.instructions.strip(), front.body))),
        model=said.model,
        temperature=said.temperature,
        max_tokens=said.max_tokens,
        origin=str(path),
        shared=said.shared,
    )


def profile_text(profile: AssistantProfile) -> str:
    """The text of a profile's file, which `parse_profile` reads."""
    header = {
        "name": profile.name,
        "description": profile.description,
        "tools": [EVERY_TOOL] if profile.tools is None else list(profile.tools),
        "model": profile.model,
        "temperature": profile.temperature,
        "max_tokens": profile.max_tokens,
        "shared": profile.shared or None,
    }
    said = {key: value for key, value in header.items() if value is not None}
    settings = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=1000)
    return f"{FENCE}\n{settings}{FENCE}\n{profile.instructions}\n"


def _fault(settings: ConfigFile, error: ValidationError) -> ConfigError:
    first, *others = faults(error.errors(), settings.values, ProfileSettings.model_fields)
    what = first.text + (f" (and {len(others)} more)" if others else "")
    lines = (settings.lines.get(first.place[:length]) for length in range(len(first.place), 0, -1))
    return fault(settings.path, next(filter(None, lines), 1), what)


# The built-in profiles.

GENERAL = "general"
ALIASES = {"general-purpose": GENERAL, "generalist": GENERAL}

CODE = (
    "read_file", "list_files", "file_stats", "search_code", "find_symbol", "get_structure", "ast_query", "git_status",
    "git_diff", "git_log", "read_skill",
)  # fmt: skip
BUILT_IN = (
    AssistantProfile(GENERAL, "Everything that there is: what answers where no profile is named.", None),
    AssistantProfile(
        "code",
        "Reads and explains programs, and their history; changes nothing.",
        CODE,
        "Look at the code before you say what it does. Name files with the lines that your answer rests on.",
        temperature=0.2,
    ),
    AssistantProfile(
        "file",
        "Reads, writes and changes files of the workspace.",
        ("read_file", "list_files", "file_stats", "write_file", "edit_file", "delete_file", "read_skill"),
        "Read a file before you change it, and change no more of it than is asked for.",
    ),
    AssistantProfile(
        "shell",
        "Runs commands in the sandbox.",
        ("shell_exec", "shell_script", "shell_output", "shell_stop", "read_skill"),
        "Say what came of each command, with its exit status where it is not 0.",
    ),
    AssistantProfile(
        "web",
        "Searches the web and reads its pages.",
        ("web_search", "web_fetch"),
        "Answer by what the pages say, not by what you remember, and name the address of each page that you rely on.",
    ),
    AssistantProfile(
        "memory",
        "Finds what was said before, and keeps notes.",
        ("search_memory", "memory_write", "memory_edit"),
        "Look up what was said before you answer. Say when it was said, and what you did not find.",
    ),
)


class NoSuchProfile(BadRequest):
    """The error that no profile has that name; the text suggests a similar one."""

    kind = "invalid"


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles that there are, by name, and a line for each that cannot be used."""

    by_name: dict[str, AssistantProfile]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> AssistantProfile:
        """Return the profile of that name, else the one with that alias. Raises `NoSuchProfile`."""
        found = self.by_name.get(name) or self.by_name.get(ALIASES.get(name, ""))
        if found is None:
            known = [*self.by_name, *ALIASES]
            raise NoSuchProfile(f"there is no profile {name[:100]!r}; {suggestion(name, known)}")
        return found


class ProfileRegistry:
    """The profiles of an installation and its workspace. Reads the files each time: they are few, and the user's to
    edit."""

    def __init__(self, settings: Path, workspace: Path) -> None:
        self._settings, self._workspace, self._trust = settings / AGENTS, workspace, TrustRegistry(settings)

    def read(self, *, of_owner: bool = True) -> Profiles:
        """Return all profiles; for others than the owner the built-in ones, and those of the owner's that are `shared`.
        The owner's come first, and may replace a built-in one; a workspace's may not.
        """
        found: dict[str, AssistantProfile] = {}
        problems: list[str] = []
        built_in = {profile.name: profile for profile in BUILT_IN}
        places = [self._own(problems), self._of_workspace(problems) if of_owner else iter(())]
        for place, texts in enumerate(places):
            for path, text in texts:
                try:
                    profile = parse_profile(path, text)
                    if profile.name in found or (place and profile.name in built_in):
                        other = (found.get(profile.name) or built_in[profile.name]).origin
                        raise fault(path, None, f"name: {profile.name} is that of one that is {other}; choose another")
                    if of_owner or profile.shared:
                        found[profile.name] = profile
                except ConfigError as error:
                    problems.append(" ".join(str(error).split()))
        return Profiles(built_in | found, tuple(problems) if of_owner else ())

    def own(self, name: str) -> Path | None:
        """The file of the owner's profile of that name; None if there is none."""
        for path, text in self._own([]):
            try:
                if parse_profile(path, text).name == name:
                    return path
            except ConfigError:
                continue  # it is among the problems
        return None

    def write(self, profile: AssistantProfile) -> AssistantProfile:
        """Store a profile of the owner's, in place of the owner's of that name. Raises `ConfigError` for one that could
        not be read back, and where a file with a mistake has its name; and `OSError`."""
        known = self.own(profile.name)
        path = known or self._settings / f"{profile.name}{SUFFIX}"
        if known is None and path.exists():
            raise fault(path, None, "the file has a mistake; repair or remove it first")
        text = profile_text(profile)
        written = parse_profile(path, text)
        self._settings.mkdir(parents=True, exist_ok=True)
        write_private(path, text)
        return written

    def remove(self, name: str) -> None:
        """Delete the owner's profile of that name; one that is built in counts again. Raises `NoSuchProfile`, and
        `OSError`."""
        path = self.own(name)
        if path is None:
            raise NoSuchProfile(f"there is no profile {name[:100]!r} of yours")
        path.unlink()

    def _own(self, problems: list[str]) -> Iterator[tuple[Path, str]]:
        try:
            paths = sorted(path for path in self._settings.iterdir() if path.suffix == SUFFIX and path.name[0] != ".")
        except FileNotFoundError:
            return
        except OSError as error:
            problems.append(f"{self._settings} cannot be read: {error.strerror}")
            return
        if len(paths) > MOST_PROFILES:
            problems.append(f"{self._settings}: more than {MOST_PROFILES} profiles")
        for path in paths[:MOST_PROFILES]:
            text, problem = read_text(path)
            if problem:
                problems.append(problem)
            else:
                yield path, text

    def _of_workspace(self, problems: list[str]) -> Iterator[tuple[Path, str]]:
        told = self._trust.profiles(self._workspace)
        problems += filter(None, (told.refused, *told.problems))
        folder = self._workspace / FOLDER / AGENTS
        yield from ((folder / name, text) for name, text in told.files)
