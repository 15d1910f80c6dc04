"""How a contained command is started: a program with its arguments, and the files that are handed to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SCRATCH = "/tmp"
CLEAN: Mapping[str, str] = {
    "PATH": PATH, "HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8", "TERM": "dumb", "USER": "user",
    "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContainedCommand:
    """What is to be run: an argument vector, or a `script` that the program named in it is given, before the
    `arguments` of the script. `folder` counts from the workspace, `environment` comes on top of the clean one."""

    argv: Sequence[str]
    folder: str = "."
    script: bytes | None = None
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Launch:
    """The argument vector under construction, with the descriptors that it names; closed when the program has them. One
    that `reports` takes bubblewrap's options for saying how it is, after the program's name; `folder` is where it is
    started, if that matters."""

    def __init__(self, *argv: str, reports: bool = False, folder: Path | None = None) -> None:
        self.argv = list(argv)
        self.reports, self.folder = reports, folder
        self.descriptors: list[int] = []
        self._files = ExitStack()

    def add(self, *arguments: str) -> None:
        """Further arguments."""
        self.argv += arguments

    def hand(self, data: bytes) -> str:
        """The number of a descriptor from which the program can read `data`. Raises `OSError`."""
        file: IO[bytes] = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the launch
        file.write(data)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return self.hold(file.fileno())

    def hold(self, descriptor: int) -> str:
        """Name a descriptor that the program is to inherit."""
        self.descriptors.append(descriptor)
        return str(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()
