"""The folders that the owner trusts: to be worked in from where a command is typed, and to instruct the assistant."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from local.core.errors import ConfigError
from local.core.files import MOST_OF_OWNERS_TEXT, locked_folder, write_private

# The instructions of a workspace to the assistant: the file `.local2/LOCAL2.md` in it.

FOLDER, FILE = ".local2", "LOCAL2.md"
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_AS_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class WorkspaceInstructions:
    """The instructions of a workspace: the text, empty if there is none; `refused` says why there is no text although
    there is a file.
    """

    text: str = ""
    refused: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_instructions(workspace: Path) -> WorkspaceInstructions:
    """Return the present instructions in the file, trusted or not. No link is followed: it could lead to another file
    at any time.
    """
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
    if len(content) > MOST_OF_OWNERS_TEXT:
        return WorkspaceInstructions(refused=f"{where} has more than {MOST_OF_OWNERS_TEXT} bytes")
    try:
        return WorkspaceInstructions(content.decode("utf-8"))
    except UnicodeDecodeError:
        return WorkspaceInstructions(refused=f"{where} is no text in UTF-8")


def _content(workspace: Path) -> bytes | None:
    """Return at most one byte more than allowed; None if it is not a regular file."""
    opened = [os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        opened.append(os.open(FOLDER, _AS_FOLDER, dir_fd=opened[0]))
        opened.append(os.open(FILE, _AS_FILE, dir_fd=opened[1]))
        if not stat.S_ISREG(os.fstat(opened[2]).st_mode):
            return None
        with os.fdopen(opened.pop(), "rb") as file:
            return file.read(MOST_OF_OWNERS_TEXT + 1)
    finally:
        for descriptor in opened:
            os.close(descriptor)


# The profiles that a workspace brings along: the Markdown files in its `.local2/agents`.

AGENTS, SUFFIX = "agents", ".md"
MOST_PROFILES = 64


@dataclass(frozen=True, slots=True)
class WorkspaceProfiles:
    """The profiles of a workspace. `files` are names and texts; `problems` has for each other one the reason, `refused`
    why none counts.
    """

    files: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    refused: str = ""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all of them; empty if there are none."""
        return hashlib.sha256(json.dumps(self.files).encode()).hexdigest() if self.files else ""


def read_profiles(workspace: Path) -> WorkspaceProfiles:
    """Return the present profiles, trusted or not. No link is followed."""
    opened: list[int] = []
    try:
        opened.append(os.open(workspace, os.O_RDONLY | os.O_DIRECTORY))
        opened.append(os.open(FOLDER, _AS_FOLDER, dir_fd=opened[0]))
        opened.append(os.open(AGENTS, _AS_FOLDER, dir_fd=opened[1]))
        return _read_all(workspace / FOLDER / AGENTS, opened[2])
    except FileNotFoundError:
        return WorkspaceProfiles()
    except OSError as error:
        return WorkspaceProfiles(refused=f"{workspace / FOLDER / AGENTS} cannot be read: {error.strerror}")
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _read_all(shown: Path, folder: int) -> WorkspaceProfiles:
    names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX) and not name.startswith("."))
    problems = [f"{shown}: more than {MOST_PROFILES} profiles"] if len(names) > MOST_PROFILES else []
    files = []
    for name in names[:MOST_PROFILES]:
        try:
            files.append((name, _text(folder, name)))
        except OSError as error:
            problems.append(f"{shown / name}: cannot be read: {error.strerror or error}")
        except UnicodeDecodeError:
            problems.append(f"{shown / name}: no text in UTF-8")
    return WorkspaceProfiles(tuple(files), tuple(problems))


def _text(folder: int, name: str) -> str:
    descriptor = os.open(name, _AS_FILE, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no file")
        content = file.read(MOST_OF_OWNERS_TEXT + 1)
    if len(content) > MOST_OF_OWNERS_TEXT:
        raise OSError(f"it has more than {MOST_OF_OWNERS_TEXT} bytes")
    return content.decode("utf-8-sig")


FILE_NAME = "trusted-workspaces.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class TrustedFolder:
    """One entry of the registry: when the folder was trusted, and the SHA-256 of the instructions and of the profiles
    that its owner saw then.
    """

    trusted_at: str
    instructions_sha256: str
    profiles_sha256: str = ""


class TrustRegistry:
    """The folders that the owner trusts: `trusted-workspaces.json` in the folder of settings, read again by every
    method. A folder is identified by its real path, and trusted without its subfolders.
    """

    def __init__(self, settings: Path) -> None:
        self._settings, self._path = settings, settings / FILE_NAME

    def trusted(self, folder: Path) -> bool:
        """Whether the owner trusts it. Raises `ConfigError` if the file cannot be read."""
        return str(folder.resolve()) in self.all()

    def instructions(self, folder: Path) -> WorkspaceInstructions:
        """Return a folder's instructions, if it is trusted and its owner has seen exactly this text; else why not."""
        found = read_instructions(folder.resolve())
        try:
            kept = self.all().get(str(folder.resolve()))
        except ConfigError as error:
            return WorkspaceInstructions(refused=str(error))
        if not found.text or (kept is not None and kept.instructions_sha256 == found.digest):
            return found
        why = "is not trusted" if kept is None else "has other instructions than when it was trusted"
        return WorkspaceInstructions(refused=f"{folder} {why}: look at them with `local2 trust {folder}`")

    def profiles(self, folder: Path) -> WorkspaceProfiles:
        """The profiles of a folder, if it is trusted and its owner has seen exactly these; else why not."""
        found = read_profiles(folder.resolve())
        try:
            kept = self.all().get(str(folder.resolve()))
        except ConfigError as error:
            return WorkspaceProfiles(refused=str(error))
        if not found.files or (kept is not None and kept.profiles_sha256 == found.digest):
            return found
        why = "is not trusted" if kept is None else "has other profiles than when it was trusted"
        return WorkspaceProfiles(refused=f"{folder} {why}: look at them with `local2 trust {folder}`")

    def trust(
        self, folder: Path, seen: WorkspaceInstructions | None = None, profiles: WorkspaceProfiles | None = None
    ) -> None:
        """Trust a folder from now on, with the instructions and profiles that its owner has seen, else those that it
        has now. Raises `ConfigError`."""
        root = folder.resolve()
        if not root.is_dir():
            raise ConfigError(f"{folder} is no folder")
        digests = (seen or read_instructions(root)).digest, (profiles or read_profiles(root)).digest
        with self._changed() as folders:
            folders[str(root)] = TrustedFolder(datetime.now(UTC).isoformat(timespec="seconds"), *digests)

    def distrust(self, folder: Path) -> None:
        """End the trust in a folder. Raises `ConfigError`, also for a folder that was not trusted."""
        with self._changed() as folders:
            if folders.pop(str(folder.resolve()), None) is None:
                raise ConfigError(f"{folder} is not trusted")

    def all(self) -> dict[str, TrustedFolder]:
        """Every trusted folder by its path. Raises `ConfigError`."""
        try:
            read = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(path): TrustedFolder(**entry) for path, entry in read["folders"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not as `local2 trust` writes it"
            text = f"{self._path} cannot be read: {why}; delete it, and trust each folder again"
            raise ConfigError(text) from None

    @contextmanager
    def _changed(self) -> Iterator[dict[str, TrustedFolder]]:
        """The folders, to be changed by one process at a time, and then written."""
        try:
            self._settings.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self._settings):
                folders = self.all()
                yield folders
                entries = {path: asdict(entry) for path, entry in sorted(folders.items())}
                write_private(self._path, json.dumps({"version": VERSION, "folders": entries}, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None
