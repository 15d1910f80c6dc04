"""A folder of a skill as its author looks at it: made, and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local.config_mcp import MCPServerConfig
from local.errors import ConfigError, ToolError
from local.services.skills.serving_skill import ServingSkill, tools_of
from local.services.skills.skill import FILE_NAME, MOST_DESCRIPTION, MOST_NAME, NAME, one_line, read_skill
from local.services.skills.skill_approval_book import SkillApprovalBook, contents_of
from local.services.skills.skill_library import SkillLibrary
from local.services.skills.skill_place import IN_SETTINGS, SkillPlace

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
    """What one folder is worth: `fault` is empty for a skill that can be used, `tools` for one that brings none; else
    it says whether they were approved."""

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
        raise ConfigError(f"{file.parent} is there already") from None
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
    """The servers of tools that a skill brings, as it is now, by the names that they get in your `mcp.json`. Raises
    `ConfigError` for what is no skill, and for what it may not bring."""
    return ServingSkill.of(folder).servers()


def to_approve(folder: Path) -> dict[str, bytes]:
    """All that is approved with a skill, by the paths of its files: what is shown is what counts. Raises
    `ConfigError` for what is no skill."""
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
