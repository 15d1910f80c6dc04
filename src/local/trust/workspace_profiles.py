"""The profiles that a workspace brings along: the Markdown files in its `.local2/agents`."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from local.trust.workspace_instructions import FOLDER, MOST_BYTES

AGENTS, SUFFIX = "agents", ".md"
MOST_PROFILES = 64
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_AS_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class WorkspaceProfiles:
    """`files` are names and texts; `problems` says of each other one why it is not read, `refused` why none counts."""

    files: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    refused: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of all of them; empty where there are none."""
        return hashlib.sha256(json.dumps(self.files).encode()).hexdigest() if self.files else ""


def read_profiles(workspace: Path) -> WorkspaceProfiles:
    """The profiles as they stand there now, whoever has written them. No link is followed."""
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
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"it has more than {MOST_BYTES} bytes")
    return content.decode("utf-8-sig")
