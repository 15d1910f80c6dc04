"""A text of the owner's in a file, with its versions."""

from __future__ import annotations

from pathlib import Path

from local.errors.base import ConfigError
from local.instructions.sourced_text import read_text
from local.instructions.text_history import BY_HAND, TextHistory
from local.private_file import write_private


class VersionedText:
    """The text as it is now, and the way back to what it was."""

    def __init__(self, path: Path, history: TextHistory) -> None:
        self.path, self.history = path, history

    def text(self) -> str:
        """The text as it is now, which is a version from then on. Raises `ConfigError` if it cannot be read."""
        text, problem = read_text(self.path)
        if problem:
            raise ConfigError(problem)
        if text or self.history.versions():
            self.history.note(text, BY_HAND)
        return text

    def become(self, text: str, by: str) -> None:
        """Change it, as a version of its own; what was there before is kept as one. Raises `ConfigError`."""
        self.text()
        try:
            self.write(text)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from None
        self.history.note(text, by)

    def revert(self, number: int) -> None:
        """Go back to a version, which becomes the latest one. Raises `ConfigError`."""
        self.become(self.history.version(number).text, f"back to {number}")

    def write(self, text: str) -> None:
        """Have the file hold that. Raises `OSError` and `ConfigError`."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.path, f"{text}\n" if text else "")
