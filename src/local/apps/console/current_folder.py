"""The folder in which a command was typed: whether it is what the assistant is to work in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from local.environment import settings_dir
from local.trust.trust_registry import TrustRegistry
from local.trust.workspace_instructions import FOLDER


def trusted_current_folder(say: Callable[[str], object]) -> Path | None:
    """The folder, if its owner trusts it. Raises `ConfigError` if that cannot be read."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was removed
        return None
    if TrustRegistry(settings_dir()).trusted(folder):
        return folder
    if (folder / FOLDER).is_dir() and folder != Path.home():
        say(f"{folder} is not trusted, so that it is not worked in and its {FOLDER} is not read; see `local2 trust`")
    return None
