"""The folder that the assistant works in, and how its files are found, looked at and read."""

from __future__ import annotations

import ctypes
import difflib
import errno
import hashlib
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Literal

from local.core.config import SystemConfig
from local.core.errors import ConfigError, ToolError

WORKSPACE = "workspace"  # the folder in the data directory that is worked in where none is named

# The folder that the assistant works in: which one it is, and that nothing in it decides about LoCAL2 itself.


def prepared_workspace(system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> Path:
    """Return the folder that `system` names, or the one in the data directory, which is made if necessary. Raises
    `ConfigError` for a missing one, or one that contains LoCAL2's own settings or data.
    """
    default = data_dir / WORKSPACE
    if system.workspace is None:
        default.mkdir(mode=0o700, exist_ok=True)
        return default
    return _allowed(system.workspace.expanduser(), system, data_dir, layers)


def require_allowed(folder: Path, system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> None:
    """Raises `ConfigError` for a folder that cannot be the workspace."""
    _allowed(folder, system, data_dir, layers)


def _allowed(named: Path, system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> Path:
    if not named.is_absolute():
        raise ConfigError(f"workspace: {named} is no absolute path; write it from / or ~ on")
    if not named.is_dir():
        raise ConfigError(f"workspace: {named} is no folder; make it first")
    root = named.resolve()
    own = (data_dir / WORKSPACE).resolve()
    for what, folder in _deciding(system, data_dir, layers):
        if folder.is_relative_to(root) or (root.is_relative_to(folder) and not root.is_relative_to(own)):
            raise ConfigError(f"workspace: {named} cannot be it, because of {folder}, which holds {what}")
    if Path.home().resolve().is_relative_to(root):
        raise ConfigError(f"workspace: {named} is or holds your home directory; choose a folder within it")
    return root


def _deciding(system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Return the files that a model must not change, because they decide about permissions, and where they are."""
    yield "what LoCAL2 keeps", data_dir.resolve()
    yield from (("settings", layer.resolve()) for layer in layers)
    yield from (("tools of your own", folder.resolve()) for folder in system.python_path)
    yield "LoCAL2 itself", Path(__file__).resolve().parents[1]


# Opens a folder beneath another one by descriptors, following no link: with `openat2` where Linux has it, else name
# by name.

Descent = Callable[[int, Sequence[str]], int]
"""Given a folder's descriptor and names, a new descriptor of the folder that they lead to. Raises `OSError`: ELOOP for
a link, ENOTDIR for what is no folder, ENOENT, EXDEV for what lies outside."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SYS_OPENAT2 = 437  # the same on every architecture of Linux
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08  # linux/openat2.h
_UNKNOWN = (errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL)  # an old kernel, or a filter on system calls


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def descend_by_name(folder: int, names: Sequence[str]) -> int:
    """Open one folder after the other, each without following a link."""
    current = os.open(".", FOLDER, dir_fd=folder)
    try:
        for name in names:
            following = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = following
    except BaseException as error:
        os.close(current)
        if isinstance(error, OSError) and error.errno == errno.ENOTDIR and _is_link(folder, names):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None  # Linux calls a link no folder
        raise
    return current


def descend_at_once(folder: int, names: Sequence[str]) -> int:
    """Have the kernel do all of it, in one call that refuses links and whatever leads out."""
    path = os.fsencode("/".join(names)) or b"."
    how = _OpenHow(FOLDER, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    while True:
        found = _libc().syscall(_SYS_OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how))
        number = ctypes.get_errno()
        if found >= 0:
            return int(found)
        if number not in (errno.EAGAIN, errno.EINTR):  # something was renamed at that moment
            raise OSError(number, os.strerror(number))


def best_descent() -> Descent:
    """The one that this machine can do."""
    if not sys.platform.startswith("linux"):
        return descend_by_name
    here = os.open("/", FOLDER)
    try:
        os.close(descend_at_once(here, ()))
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        return descend_by_name
    finally:
        os.close(here)
    return descend_at_once


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _is_link(folder: int, names: Sequence[str]) -> bool:
    """Whether one of the names is a link; only for the words of an error."""
    current = os.open(".", FOLDER, dir_fd=folder)
    try:
        for name in names:
            if stat.S_ISLNK(os.stat(name, dir_fd=current, follow_symlinks=False).st_mode):
                return True
            following = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = following
    except OSError:
        return False
    finally:
        os.close(current)
    return False


# A path as a model writes it, checked before anything is looked for: the names of folders below the workspace.

MOST_BYTES, MOST_BYTES_OF_NAME, MOST_PARTS = 4096, 255, 100
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})
SHOWN = 200  # characters of a path in an error


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """A checked path below the workspace. `parts` are names, never `.`, `..` or empty; without parts it is the
    workspace itself.
    """

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, root: PurePosixPath | None = None) -> WorkspacePath:
        """Read a path that is relative to the workspace, or an absolute one that begins with `root`. Nothing in it is
        expanded or decoded. Raises `ToolError` (outside, bad_path)."""
        if text.startswith("/"):
            text = _below(text, root)
        parts = tuple(part for part in text.split("/") if part not in ("", "."))
        if ".." in parts:
            raise ToolError(f"{shown(text)}: “..” is not allowed; name the path from the workspace on", kind="outside")
        _require_sane(text, parts)
        return cls(parts)

    @property
    def name(self) -> str:
        """The last name, empty for the workspace itself."""
        return self.parts[-1] if self.parts else ""

    @property
    def folder(self) -> WorkspacePath:
        """The folder in which it lies."""
        return WorkspacePath(self.parts[:-1])

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    def require_unprotected(self, protected: Collection[str]) -> None:
        """Raises `ToolError` (protected) where a name on the way is one of those, however it is written."""
        taken = {folded(name) for name in protected}
        for part in self.parts:
            if folded(part) in taken:
                text = f"{shown(str(self))} may not be changed: {part!a} is on the list protected in files.yaml"
                raise ToolError(text, kind="protected")


def folded(name: str) -> str:
    """A name as a file system may take it that ignores case, forms and invisible characters."""
    visible = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold()


def shown(text: str) -> str:
    """A path within an error: short, and in visible characters."""
    return ascii(text[:SHOWN])


def on_one_line(text: str) -> str:
    """Return a name with characters escaped that would end a line or move a cursor."""
    return "".join(ascii(each)[1:-1] if unicodedata.category(each) in _NO_TEXT else each for each in text)


def _below(text: str, root: PurePosixPath | None) -> str:
    start = str(root).rstrip("/") if root is not None else None
    if start is not None and (text == start or text.startswith(f"{start}/")):
        return text[len(start) :]
    raise ToolError(f"{shown(text)} is outside of the workspace; name the path from the workspace on", kind="outside")


def _require_sane(text: str, parts: tuple[str, ...]) -> None:
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        raise ToolError(f"{shown(text)} is no path: it holds half a character", kind="bad_path") from None
    if any(unicodedata.category(each) == "Cc" for each in text):
        raise ToolError(f"{shown(text)} is no path: it holds a control character", kind="bad_path")
    if sum(sizes) + len(sizes) > MOST_BYTES or len(parts) > MOST_PARTS or max(sizes, default=0) > MOST_BYTES_OF_NAME:
        limits = f"{MOST_BYTES} bytes, {MOST_PARTS} names, {MOST_BYTES_OF_NAME} bytes a name"
        raise ToolError(f"{shown(text)}… is too long for a path: at most {limits}", kind="bad_path")


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
    """The metadata of a file or folder: its path in the workspace, size in bytes, time of its last change in
    seconds since 1970, and permissions. A `link` is reported and never followed."""

    path: str
    kind: Literal["file", "folder", "link", "device"]
    size: int
    modified_at: float
    mode: int


class Workspace:
    """The folder that the assistant works in. Every path is resolved again, from the root's descriptor down, by
    `descent`. Each method raises `ToolError` for what cannot be done: not_found, link, outside, not_a_folder,
    not_a_file, too_large, denied, disk_full, gone.
    """

    def __init__(self, root: Path, descent: Descent | None = None) -> None:
        """`root` may be reached by links; paths below it may not contain any."""
        self.root = root.resolve()
        self._descent = descent or best_descent()

    def path(self, text: str) -> WorkspacePath:
        """A path as it was written. Raises `ToolError` (outside, bad_path)."""
        return WorkspacePath.parse(text, PurePosixPath(self.root))

    @contextmanager
    def folder(self, path: WorkspacePath) -> Iterator[int]:
        """The descriptor of a folder."""
        with self._explaining(path):
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
            self._explaining(path),
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
        """Return the SHA-256 of a file's content; None if there is nothing of that name."""
        try:
            with self.file(path) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except ToolError as error:
            if error.kind == "not_found":
                return None
            raise

    def facts(self, path: WorkspacePath) -> FileFacts:
        """Return size, kind, time and permissions of a file or folder."""
        if not path.parts:
            with self.folder(path) as folder:
                return _facts(path, os.fstat(folder))
        with self.folder(path.folder) as folder:
            return _facts(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))

    def entries(self, path: WorkspacePath, depth: int = 1, closed: Collection[str] = ()) -> Iterator[FileFacts]:
        """Yield the content of a folder, sorted by name, and of those within it down to a depth, each after its folder.
        Entries that disappear meanwhile, may not be opened or are in a folder named in `closed` are left out.
        """
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
    def _explaining(self, path: WorkspacePath) -> Iterator[None]:
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


# Which repository a file of the workspace belongs to, and whether that was cloned.

MOST_SETTINGS = 1_000_000  # bytes
# A section that names a remote, or another file that may; two sections can be on one line.
_REMOTE = re.compile(rb"\[[ \t]*(?:remote|include|includeif)\b", re.I)
_REMOTES = ("remotes", "branches", "refs/remotes", "config.worktree")  # where git keeps them besides


class CloneSearch:
    """A search for cloned repositories in a workspace. It looks at each folder once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._nearest: dict[tuple[str, ...], Path | None] = {}

    def of(self, paths: Iterable[str]) -> set[Path]:
        """The clones that hold these files or folders. A repository is one if it names a remote or another file
        of settings, lies elsewhere, or cannot be read; a file belongs to the nearest one above it."""
        found = {self._above(tuple(path.split("/"))) for path in paths}
        return {clone for clone in found if clone is not None}

    def _above(self, folder: tuple[str, ...]) -> Path | None:
        if folder not in self._nearest:
            self._nearest[folder] = self._look(folder)
        return self._nearest[folder]

    def _look(self, folder: tuple[str, ...]) -> Path | None:
        path = WorkspacePath(tuple(part for part in folder if part not in ("", ".")))
        is_clone = self._is_clone(path)
        if is_clone is None:
            return self._above(folder[:-1]) if folder else None
        return self._workspace.root.joinpath(*path.parts) if is_clone else None

    def _is_clone(self, path: WorkspacePath) -> bool | None:
        """Whether the repository is a clone; None if there is none."""
        git = WorkspacePath((*path.parts, ".git"))
        try:
            kind = self._workspace.facts(git).kind
        except ToolError:  # such as for a path that is a file
            return None
        if kind != "folder":
            return True
        try:
            settings = self._workspace.read(WorkspacePath((*git.parts, "config")), MOST_SETTINGS)
        except ToolError:
            return True
        return _REMOTE.search(settings) is not None or any(self._holds(git, place) for place in _REMOTES)

    def _holds(self, git: WorkspacePath, place: str) -> bool:
        """Whether there is such a file, or such a folder that is not empty."""
        path = WorkspacePath((*git.parts, *place.split("/")))
        try:
            return self._workspace.facts(path).kind != "folder" or any(self._workspace.entries(path))
        except ToolError as error:
            return error.kind != "not_found"
