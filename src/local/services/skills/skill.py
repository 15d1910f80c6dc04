"""What the file SKILL.md of a skill says, in the open Agent Skills format (https://agentskills.io/specification)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.config_file import ConfigFile, fault
from local.config_front_matter import split_front_matter
from local.errors import ConfigError

FILE_NAME = "SKILL.md"
MOST_BYTES = 200_000  # of SKILL.md: it is read whole, and what is longer belongs into references
MOST_NAME, MOST_DESCRIPTION, MOST_COMPATIBILITY = 64, 1024, 500
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+")


@dataclass(frozen=True, slots=True)
class Skill:
    """`description` is one line of visible text, `body` the instructions; `programs` are those that
    `metadata.requires` names, without which it cannot be used."""

    name: str
    description: str
    body: str
    license: str = ""
    compatibility: str = ""
    programs: tuple[str, ...] = ()


def read_skill(name: str, content: bytes) -> Skill:
    """The skill in a folder of that name, whose SKILL.md holds `content`. Raises `ConfigError` with one line that says
    what is wrong, and where."""
    path = Path(one_line(name)) / FILE_NAME
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
        """What stands under `metadata`."""
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
