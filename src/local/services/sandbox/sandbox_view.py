"""What of this machine a contained command gets to see."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from local.errors import SandboxRefused

# What programs need to start, to name users and hosts, and to check certificates; private keys lie elsewhere.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "magic",
    "mime.types", "nsswitch.conf", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols", "python3", "services",
    "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip


SKILLS = "/skills"  # where the folders of skills are, each by its name


def skill_path(name: str, folder: Path, platform: str = sys.platform) -> str:
    """Where a contained command finds the folder of a skill; macOS can show it nowhere else than where it is."""
    return str(folder) if platform == "darwin" else f"{SKILLS}/{name}"


@dataclass(frozen=True, slots=True)
class SandboxView:
    """The workspace, which can be written to if it is `writable`, and further folders that can be read. `closed` are
    those of which nothing may ever be seen: the data directory, the settings, the keys.

    Raises `SandboxRefused` for a workspace or a folder to read that holds one of the closed ones or lies in it, and for
    one that is the home directory, the root or a part of the system. The workspace and the folders of `skills` may lie
    in a closed folder: nothing else of that is visible.
    """

    workspace: Path
    readable: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = ()
    writable: bool = True
    skills: tuple[Path, ...] = ()
    network: bool = False  # that of this machine, with its own ports

    def __post_init__(self) -> None:
        home = Path.home().resolve()
        system = [Path(name) for name in (*SYSTEM, "/etc", "/proc", "/sys", "/dev", "/run", "/tmp", "/boot")]
        for folder in (self.workspace, *self.readable, *self.skills):
            real = folder.resolve()
            holds = [closed for closed in (home, *self.closed) if _is_inside(closed.resolve(), real)]
            if holds:
                raise SandboxRefused(f"{folder} holds {holds[0]}, which no command may see: choose a folder below it")
        real = self.workspace.resolve()
        for part in system:
            if real == part or (part != Path("/tmp") and _is_inside(real, part)):
                raise SandboxRefused(f"the workspace {self.workspace} is a part of the system: choose another folder")
        for folder in self.readable:
            if any(_is_inside(folder.resolve(), closed.resolve()) for closed in self.closed):
                raise SandboxRefused(f"{folder} is private to LoCAL2, and no command may read it")


def _is_inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
