"""A real disk that is soon full: a file system of a few megabytes, for tests and for the chaos suite."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Self


class MayNotMount(Exception):
    """Only the system's owner may mount a file system."""


class SmallDisk:
    """A file system of its own, of so many MiB, mounted at `folder` for as long as a `with` block lasts."""

    def __init__(self, folder: Path, size: int = 8) -> None:
        self.folder = folder
        self._options = f"size={size}m,nr_inodes=500"
        self._ballast, self._names = folder / "ballast", folder / "names"

    def __enter__(self) -> Self:
        """Mounted. Raises `MayNotMount`."""
        self.folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", self._options, "tmpfs", str(self.folder)]
        if not shutil.which("mount") or subprocess.run(words, capture_output=True).returncode:
            raise MayNotMount("mounting a small disk takes the rights of the system's owner")
        return self

    def __exit__(self, *error: object) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)

    def fill(self, *, room: int = 0) -> None:
        """Leave so many bytes, and no more."""
        with suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            while file.write(b"x" * 4096) == 4096:
                pass
        os.truncate(self._ballast, self._ballast.stat().st_size - room)

    def fill_names(self) -> None:
        """Leave no room for one more file."""
        self._names.mkdir()
        with suppress(OSError):
            for number in count():
                (self._names / str(number)).touch()

    def free(self) -> None:
        """Have all the room again."""
        self._ballast.unlink(missing_ok=True)
        shutil.rmtree(self._names, ignore_errors=True)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Without any room meanwhile."""
        self.fill()
        try:
            yield
        finally:
            self.free()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Whoever opens a file there meanwhile cannot write to it; files that are open do not notice."""
        aside = self.folder.with_name(f"{self.folder.name}.read-only")
        aside.mkdir(exist_ok=True)
        for command in (
            ["--bind", self.folder, aside],
            ["-o", "remount,bind,ro", aside],  # where nobody has opened a file to write to it
            ["--bind", aside, self.folder],
        ):
            subprocess.run(["mount", *command], check=True)
        try:
            yield
        finally:
            for path in (self.folder, aside):
                subprocess.run(["umount", "--lazy", path], check=True)
