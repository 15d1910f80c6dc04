"""The folder that the assistant works in, and how its files are found, looked at and read."""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Literal

from local.errors import ToolError
from local.services.workspace.folder_descent import Descent, best_descent
from local.services.workspace.workspace_path import WorkspacePath, shown

MOST_DEPTH = 40  # folders below the one that is listed
_REGULAR = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_SAID = {
    errno.ENOENT: ("not_found", "is not there"),
    errno.ENOTDIR: ("not_a_folder", "leads through something that is no folder"),
    errno.ELOOP: ("link", "is a link or lies behind one; links are not followed"),
    errno.EXDEV: ("outside", "leads out of the workspace"),
    errno.EACCES: ("denied", "may not be opened by this user"),
    errno.EPERM: ("denied", "may not be changed by this user"),
    errno.EROFS: ("denied", "lies on a file system that is read-only"),
    errno.ENOSPC: ("disk_full", "could not be written: the disk is full"),
    errno.EDQUOT: ("disk_full", "could not be written: the disk quota is used up"),
}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of a file without reading it: its path in the workspace, size in bytes, time of its last change in
    seconds since 1970, and permissions. A `link` is told of and never followed."""

    path: str
    kind: Literal["file", "folder", "link", "device"]
    size: int
    modified_at: float
    mode: int


class Workspace:
    """Every path is resolved anew, from the root's descriptor down, by `descent`. Each method raises `ToolError` for
    what cannot be done: not_found, link, outside, not_a_folder, not_a_file, too_large, denied, disk_full, gone."""

    def __init__(self, root: Path, descent: Descent | None = None) -> None:
        """`root` may be reached by links; what lies below it may not."""
        self.root = root.resolve()
        self._descent = descent or best_descent()

    def path(self, text: str) -> WorkspacePath:
        """A path as it was written. Raises `ToolError` (outside, bad_path)."""
        return WorkspacePath.parse(text, PurePosixPath(self.root))

    @contextmanager
    def folder(self, path: WorkspacePath) -> Iterator[int]:
        """The descriptor of a folder."""
        with self._said_of(path):
            opened = self._open_folder(path)
            try:
                yield opened
            finally:
                os.close(opened)

    @contextmanager
    def file(self, path: WorkspacePath) -> Iterator[BufferedReader]:
        """A regular file, open for reading; devices, pipes and sockets are not so much as opened."""
        with (
            self.folder(path.folder) as folder,
            self._said_of(path),
            os.fdopen(open_regular(folder, path), "rb") as file,
        ):
            yield file

    def read(self, path: WorkspacePath, most: int) -> bytes:
        """All of a file of at most so many bytes."""
        with self.file(path) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ToolError(f"{shown(str(path))} has more than {most} bytes, which is the most", kind="too_large")
        return content

    def digest(self, path: WorkspacePath) -> str | None:
        """The SHA-256 of what a file holds; None if there is nothing of that name."""
        try:
            with self.file(path) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except ToolError as error:
            if error.kind == "not_found":
                return None
            raise

    def facts(self, path: WorkspacePath) -> FileFacts:
        """What is known of a file or folder."""
        if not path.parts:
            with self.folder(path) as folder:
                return _facts(path, os.fstat(folder))
        with self.folder(path.folder) as folder:
            return _facts(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))

    def entries(self, path: WorkspacePath, depth: int = 1, closed: Collection[str] = ()) -> Iterator[FileFacts]:
        """What lies in a folder, sorted by name, and in those within it down to a depth, each after its folder. What
        disappears meanwhile, may not be opened or lies in a folder of a name in `closed` is left out."""
        with self.folder(path) as folder:
            found = sorted(_entries(path, folder), key=lambda entry: (entry.kind != "folder", entry.path))
        for entry in found:
            yield entry
            within = WorkspacePath((*path.parts, entry.path.rpartition("/")[2]))
            if entry.kind == "folder" and min(depth, MOST_DEPTH) > 1 and within.name not in closed:
                yield from self._entries_within(within, depth - 1, closed)

    def similar(self, path: WorkspacePath) -> list[str]:
        """Names in the same folder that a person may have meant."""
        try:
            with self.folder(path.folder) as folder:
                near = difflib.get_close_matches(path.name, os.listdir(folder), n=3)  # noqa: PTH208 - a descriptor
        except ToolError:
            return []
        return [str(WorkspacePath((*path.folder.parts, name))) for name in near]

    def _entries_within(self, path: WorkspacePath, depth: int, closed: Collection[str]) -> Iterator[FileFacts]:
        try:
            yield from self.entries(path, depth, closed)
        except ToolError:
            return

    def _open_folder(self, path: WorkspacePath) -> int:
        try:
            root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise ToolError(f"the workspace {self.root} cannot be opened: {reason}", kind="gone") from None
        try:
            return self._descent(root, path.parts)
        finally:
            os.close(root)

    @contextmanager
    def _said_of(self, path: WorkspacePath) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._explained(path, error) from None

    def _explained(self, path: WorkspacePath, error: OSError) -> ToolError:
        kind, words = _SAID.get(error.errno or 0, ("io", f"cannot be used: {error.strerror}"))
        near = self.similar(path) if kind == "not_found" and path.parts else []
        hint = f"; there is {', '.join(map(shown, near))}" if near else ""
        return ToolError(f"{shown(str(path))} {words}{hint}", kind=kind)


def open_regular(folder: int, path: WorkspacePath) -> int:
    """The descriptor of a regular file in an open folder, for reading. Raises `OSError`, `ToolError` (not_a_file)."""
    seen = os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False)
    _require_regular(path, seen)
    opened = os.open(path.name, os.O_RDONLY | _REGULAR, dir_fd=folder)
    try:
        _require_regular(path, os.fstat(opened))  # it may have been swapped since
    except BaseException:
        os.close(opened)
        raise
    return opened


def _require_regular(path: WorkspacePath, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, a pipe or a socket"
        raise ToolError(f"{shown(str(path))} is {what}, expected a file", kind="not_a_file")


def _entries(path: WorkspacePath, folder: int) -> Iterator[FileFacts]:
    with os.scandir(folder) as found:
        for entry in found:
            try:
                yield _facts(WorkspacePath((*path.parts, entry.name)), entry.stat(follow_symlinks=False))
            except OSError:
                continue


def _facts(path: WorkspacePath, found: os.stat_result) -> FileFacts:
    kind: Literal["file", "folder", "link", "device"] = "device"
    if stat.S_ISLNK(found.st_mode):
        kind = "link"
    elif stat.S_ISDIR(found.st_mode):
        kind = "folder"
    elif stat.S_ISREG(found.st_mode):
        kind = "file"
    return FileFacts(str(path), kind, found.st_size, found.st_mtime, stat.S_IMODE(found.st_mode))
