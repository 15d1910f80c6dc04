"""What a workspace tells the assistant to do: the file `.local2/LOCAL2.md` in it."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

FOLDER, FILE = ".local2", "LOCAL2.md"
MOST_BYTES = 32_000
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_AS_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class WorkspaceInstructions:
    """The text, empty where there is none; `refused` says why there is no text although there is a file."""

    text: str = ""
    refused: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_instructions(workspace: Path) -> WorkspaceInstructions:
    """The instructions as they stand in the file now, whoever has written them. No link is followed: it could lead to
    another file at any time."""
    where = workspace / FOLDER / FILE
    try:
        content = _content(workspace)
    except (FileNotFoundError, NotADirectoryError):
        if not (workspace / FOLDER).is_symlink():
            return WorkspaceInstructions()
        return WorkspaceInstructions(refused=f"{where.parent} is a link, which is not followed")
    except OSError as error:
        return WorkspaceInstructions(refused=f"{where} cannot be read: {error.strerror}")
    if content is None:
        return WorkspaceInstructions(refused=f"{where} is no file")
    if len(content) > MOST_BYTES:
        return WorkspaceInstructions(refused=f"{where} has more than {MOST_BYTES} bytes")
    try:
        return WorkspaceInstructions(content.decode("utf-8"))
    except UnicodeDecodeError:
        return WorkspaceInstructions(refused=f"{where} is no text in UTF-8")


def _content(workspace: Path) -> bytes | None:
    """At most one byte too many; None of what is no regular file."""
    opened = [os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        opened.append(os.open(FOLDER, _AS_FOLDER, dir_fd=opened[0]))
        opened.append(os.open(FILE, _AS_FILE, dir_fd=opened[1]))
        if not stat.S_ISREG(os.fstat(opened[2]).st_mode):
            return None
        with os.fdopen(opened.pop(), "rb") as file:
            return file.read(MOST_BYTES + 1)
    finally:
        for descriptor in opened:
            os.close(descriptor)
