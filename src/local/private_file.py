"""Small files for the eyes of this Unix user alone."""

from __future__ import annotations

import os
from pathlib import Path

OWNER_ONLY = 0o600


def write_private(path: Path, text: str, mode: int = OWNER_ONLY) -> None:
    """Write a whole file durably in place of what is there, of that mode from its first byte on. Raises `OSError`."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
