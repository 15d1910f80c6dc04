"""How a setting names a secret: `secret:NAME`, whose value is in the store of secrets and in no file of settings."""

from __future__ import annotations

import re

MARK = "secret:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
NAMES = "1 to 64 letters, digits and _.-, with a letter or digit first"


def name_in(text: str) -> str | None:
    """The name in `secret:NAME`, even if it is none; None for a value."""
    return text.removeprefix(MARK) if text.startswith(MARK) else None
