"""A folder of a skill as its author looks at it: made, and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local.errors import ConfigError
from local.services.skills.skill import FILE_NAME, MOST_DESCRIPTION, MOST_NAME, NAME, one_line
from local.services.skills.skill_library import SkillLibrary
from local.services.skills.skill_place import SkillPlace

BELOW = "skills"  # in the folder of settings
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
    """What one folder is worth: `fault` is empty for a skill that can be used."""

    folder: Path
    fault: str


def new_skill(settings: Path, name: str, description: str) -> Path:
    """Make a skill to be written on; returns its SKILL.md. Raises `ConfigError`."""
    if not NAME.fullmatch(name) or len(name) > MOST_NAME:
        text = f"lower-case letters, digits and single hyphens between them, at most {MOST_NAME}"
        raise ConfigError(f"{one_line(name)!r} cannot be a skill's name: {text}")
    said = one_line(description)[:MOST_DESCRIPTION].replace('"', "'").replace("\\", "/")
    file = settings / BELOW / name / FILE_NAME
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
        place = SkillPlace("settings", settings, (BELOW,))
        named = [place.folder / name for name in place.names()]
    return [_checked(folder) for folder in named]


def _checked(folder: Path) -> SkillCheck:
    found = [skill for skill in SkillLibrary([SkillPlace("extra", folder.parent)]).skills() if skill.folder == folder]
    if not found:
        return SkillCheck(folder, "there is no such folder")
    return SkillCheck(folder, found[0].error)
