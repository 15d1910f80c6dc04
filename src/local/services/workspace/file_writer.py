"""Writes and removes files of the workspace, each at one moment, and only what still is as it was expected."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from local import failpoints
from local.errors import ToolError
from local.services.workspace.workspace import Workspace, open_regular
from local.services.workspace.workspace_path import WorkspacePath, shown

NEW_MODE = 0o644
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileWriter:
    """Each method says what it expects to find by its SHA-256, None for nothing of that name, and raises `ToolError`
    (changed) where it finds something else; otherwise as `Workspace` does."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def put(
        self, path: WorkspacePath, content: BinaryIO, expected: str | None, part: str, mode: int = NEW_MODE
    ) -> None:
        """Have a file hold that content: written beside it under the name `part`, synced, then given its name."""
        with self._workspace.folder(path.folder) as folder, self._clean(folder, part):
            opened = os.open(part, _NEW, 0o600, dir_fd=folder)
            with os.fdopen(opened, "wb") as file:
                shutil.copyfileobj(content, file)
                os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777)
                file.flush()
                os.fsync(file.fileno())
            failpoints.reach("files.written")
            self._require(folder, path, expected)
            os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def remove(self, path: WorkspacePath, expected: str) -> None:
        """Take a file away."""
        with self._workspace.folder(path.folder) as folder:
            self._require(folder, path, expected)
            os.unlink(path.name, dir_fd=folder)
            os.fsync(folder)

    def make_folders(self, path: WorkspacePath) -> int:
        """Make the folders on the way to a file that are not there; returns how many that were."""
        made = 0
        for length in range(1, len(path.parts)):
            within = WorkspacePath(path.parts[:length])
            with self._workspace.folder(within.folder) as folder, suppress(FileExistsError):
                os.mkdir(within.name, 0o755, dir_fd=folder)
                made += 1
        return made

    def drop_folders(self, path: WorkspacePath, number: int) -> None:
        """Take away that many of the folders on the way to a file, as far as they are empty."""
        for _ in range(number):
            path = path.folder
            try:
                with self._workspace.folder(path.folder) as folder:
                    os.rmdir(path.name, dir_fd=folder)
            except ToolError:
                return

    def drop_part(self, path: WorkspacePath, part: str) -> None:
        """Remove what a killed process has left half written beside a file."""
        with suppress(ToolError), self._workspace.folder(path.folder) as folder:
            os.unlink(part, dir_fd=folder)

    @contextmanager
    def _clean(self, folder: int, part: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise

    def _require(self, folder: int, path: WorkspacePath, expected: str | None) -> None:
        """That what is there now is what was expected."""
        try:
            with os.fdopen(open_regular(folder, path), "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            found = None
        if found != expected:
            what = "is there meanwhile" if expected is None else "was changed by somebody else meanwhile"
            raise ToolError(f"{shown(str(path))} {what}; nothing was written", kind="changed")
