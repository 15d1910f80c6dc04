"""Which profiles there are: the owner's, those of a trusted workspace, and those that are built in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local.config_fault import suggestion
from local.config_file import fault
from local.errors import ConfigError
from local.errors.base import BadRequest
from local.instructions.assistant_profile import AssistantProfile, parse_profile
from local.instructions.built_in_profiles import ALIASES, BUILT_IN
from local.instructions.sourced_text import read_text
from local.trust.trust_registry import TrustRegistry
from local.trust.workspace_instructions import FOLDER
from local.trust.workspace_profiles import AGENTS, MOST_PROFILES, SUFFIX


class NoSuchProfile(BadRequest):
    """Nobody has a profile of that name; the text says which was perhaps meant."""

    kind = "invalid"


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles that there are, by name, and a line for each that cannot be used."""

    by_name: dict[str, AssistantProfile]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> AssistantProfile:
        """The one of that name, else of the name that this is another one for. Raises `NoSuchProfile`."""
        found = self.by_name.get(name) or self.by_name.get(ALIASES.get(name, ""))
        if found is None:
            known = [*self.by_name, *ALIASES]
            raise NoSuchProfile(f"there is no profile {name[:100]!r}; {suggestion(name, known)}")
        return found


class ProfileRegistry:
    """Reads the files anew each time: they are few, and the user's to edit."""

    def __init__(self, settings: Path, workspace: Path) -> None:
        self._settings, self._workspace, self._trust = settings / AGENTS, workspace, TrustRegistry(settings)

    def read(self, *, of_owner: bool = True) -> Profiles:
        """All that there are; for others than the owner without those of the workspace. The owner's come first, and
        may take the place of one that is built in; a workspace's may not."""
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
                    found[profile.name] = profile
                except ConfigError as error:
                    problems.append(" ".join(str(error).split()))
        return Profiles(built_in | found, tuple(problems) if of_owner else ())

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
