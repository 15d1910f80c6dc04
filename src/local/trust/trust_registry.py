"""The folders that the owner trusts: to be worked in from where a command is typed, and to instruct the assistant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from local.errors.base import ConfigError
from local.folder_lock import locked_folder
from local.private_file import write_private
from local.trust.workspace_instructions import WorkspaceInstructions, read_instructions
from local.trust.workspace_profiles import WorkspaceProfiles, read_profiles

FILE_NAME = "trusted-workspaces.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class TrustedFolder:
    """When the folder was trusted, and the SHA-256 of the instructions and of the profiles that its owner saw then."""

    trusted_at: str
    instructions_sha256: str
    profiles_sha256: str = ""


class TrustRegistry:
    """`trusted-workspaces.json` in the folder of settings, looked at as it is now by every method. A folder is meant by
    the path that it really has, and is trusted without those in it."""

    def __init__(self, settings: Path) -> None:
        self._settings, self._path = settings, settings / FILE_NAME

    def trusted(self, folder: Path) -> bool:
        """Whether the owner has said so. Raises `ConfigError` if the file cannot be read."""
        return str(folder.resolve()) in self.all()

    def instructions(self, folder: Path) -> WorkspaceInstructions:
        """What a folder instructs, if it is trusted and its owner has seen exactly this; else why not."""
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
        """No longer. Raises `ConfigError`, also for a folder that was not trusted."""
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
