"""Which skills of other places the owner has read and approved, and whether they are still the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from local.errors import ConfigError, ToolError
from local.private_file import write_private
from local.services.skills.skill_place import SkillPlace

FILE_NAME = "approved-skills.json"
MOST_FILES, MOST_BYTES = 500, 20_000_000  # of a skill that is to be approved


def contents_of(place: SkillPlace, name: str) -> dict[str, bytes]:
    """All files of a skill, read once, by their paths from its folder on; links are none. Raises `ToolError`, also for
    one that is too large to be looked through."""
    files, start = place.files(), len(str(place.path(name))) + 1
    contents = dict[str, bytes]()
    room = MOST_BYTES
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
    """`approved-skills.json` in the folder of settings, looked at as it is now: digests by folder."""

    def __init__(self, settings: Path) -> None:
        self.settings, self._path = settings, settings / FILE_NAME

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
        """Have it used as long as it is this one. Raises `ConfigError`."""
        approved = {**self._all(), str(folder.resolve()): digest_of(contents)}
        try:
            write_private(self._path, json.dumps(approved, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None

    def signature(self) -> tuple[int, ...]:
        """Something that is another one as soon as something else is approved."""
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
