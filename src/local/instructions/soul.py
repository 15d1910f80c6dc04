"""The assistant's soul: `SOUL.md` in the folder of settings, with its versions."""

from __future__ import annotations

from pathlib import Path

from local.instructions.text_history import TextHistory
from local.instructions.versioned_text import VersionedText

SOUL = "SOUL.md"
FOLDER = "soul"  # in the data directory


def soul_history(data_dir: Path) -> TextHistory:
    """The versions of the soul."""
    return TextHistory(data_dir / FOLDER, "the soul")


class Soul(VersionedText):
    """The text that says what the assistant is like."""

    def __init__(self, settings: Path, data_dir: Path) -> None:
        super().__init__(settings / SOUL, soul_history(data_dir))
