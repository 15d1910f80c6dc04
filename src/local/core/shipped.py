"""The place of files that are shipped beside the code. Quick to import."""

from __future__ import annotations

from pathlib import Path


def shipped_dir() -> Path:
    """Return the folder with `config`, `stories` and the locks: the checkout, or the wheel's copy of them."""
    package = Path(__file__).resolve().parents[1]
    carried = package / "shipped"
    return carried if carried.is_dir() else package.parents[1]
