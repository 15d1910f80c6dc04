"""What files held, by the SHA-256 of it: kept for whoever wants it back."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from local.errors import ToolError
from local.services.sqlite_file import store_failure

PIECE = 1024 * 1024
_PART = ".part"


class ContentStore:
    """A folder with a file for each content, mode 0600, on the disk when `keep` returns. `size` is that of all of them
    in bytes. Raises `StoreFailed`, `StoreFull` where the disk is full."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """No single content may have more than `most_bytes`."""
        self._folder, self._most = folder, most_bytes
        self.size = 0

    def open(self) -> None:
        """Make the folder, and clear away what a killed process has left half written."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self._folder.glob(f"*{_PART}"):
            path.unlink(missing_ok=True)
        self.size = sum(path.stat().st_size for path in self._files())

    def keep(self, content: BinaryIO) -> str:
        """Keep what can be read there; returns its SHA-256. Raises `ToolError` (too_large)."""
        part = self._folder / f"{uuid.uuid4().hex}{_PART}"
        try:
            digest, size = self._copy(content, part)
            kept = self._folder / digest
            if kept.exists():
                part.unlink()
            else:
                part.replace(kept)
                self._sync()
                self.size += size
            return digest
        except OSError as error:
            raise store_failure(part, error, what="cannot be written: ") from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def get(self, digest: str) -> BinaryIO:
        """What was kept. Raises `ToolError` (not_kept)."""
        try:
            return (self._folder / digest).open("rb")
        except OSError:
            raise ToolError("what was there before is not kept any more", kind="not_kept") from None

    def drop_all_but(self, digests: Collection[str]) -> None:
        """Remove what nobody refers to."""
        for path in self._files():
            if path.name not in digests:
                self.size -= path.stat().st_size
                path.unlink(missing_ok=True)

    def _copy(self, content: BinaryIO, part: Path) -> tuple[str, int]:
        found, size = hashlib.sha256(), 0
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while piece := content.read(PIECE):
                size += len(piece)
                if size > self._most:
                    text = f"it has more than {self._most} bytes, too much to be kept for an undo; nothing was changed"
                    raise ToolError(text, kind="too_large")
                found.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        return found.hexdigest(), size

    def _files(self) -> Iterator[Path]:
        return (path for path in self._folder.iterdir() if path.suffix != _PART)

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
