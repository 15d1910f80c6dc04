"""Every version that a text has had, in one file of a folder in the data directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from local.errors.base import ConfigError
from local.folder_lock import locked_folder
from local.private_file import write_private

FILE = "versions.json"
BY_HAND = "by hand"
MOST_VERSIONS = 200


@dataclass(frozen=True, slots=True)
class TextVersion:
    """`by` says who has changed it: the owner by hand, a version that was gone back to, a proposal."""

    number: int
    changed_at: str  # ISO 8601, UTC
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """The file as it is written."""

    versions: list[TextVersion]


class TextHistory:
    """`what` is what the text is called where something is wrong. Several processes may note versions; the oldest of
    too many go."""

    def __init__(self, folder: Path, what: str) -> None:
        self.folder, self.what = folder, what
        self._path = folder / FILE

    def versions(self) -> Sequence[TextVersion]:
        """All that are kept, the oldest first. Raises `ConfigError`."""
        try:
            return TypeAdapter(_Kept).validate_json(self._path.read_bytes(), strict=True).versions
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not as it was written"
            raise ConfigError(f"{self._path} cannot be read: {why}; move it away") from None

    def version(self, number: int) -> TextVersion:
        """The version of that number. Raises `ConfigError`."""
        kept = {version.number: version for version in self.versions()}
        if number not in kept:
            known = f"{min(kept)} to {max(kept)} are kept" if kept else "none is kept yet"
            raise ConfigError(f"there is no version {number} of {self.what}; {known}")
        return kept[number]

    def note(self, text: str, by: str) -> None:
        """The text is this from now on; nothing where it was that already. Raises `ConfigError`."""
        if text or self.versions():
            self._keep(text, by)

    def begin(self) -> None:
        """Keep that there was none, where nothing is kept yet: then one can go back to that. Raises `ConfigError`."""
        if not self.versions():
            self._keep("", BY_HAND)

    def noted(self, text: str, by: str) -> str:
        """Why a version could not be noted; empty where it was."""
        if not text and not self._path.exists():
            return ""
        try:
            self.note(text, by)
        except ConfigError as error:
            return str(error)
        return ""

    def _keep(self, text: str, by: str) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self.folder):
                kept = list(self.versions())
                if kept and text == kept[-1].text:
                    return
                number = kept[-1].number + 1 if kept else 1
                kept.append(TextVersion(number, datetime.now(UTC).isoformat(timespec="seconds"), by, text))
                told = {"versions": [asdict(each) for each in kept[-MOST_VERSIONS:]]}
                write_private(self._path, json.dumps(told, ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None
