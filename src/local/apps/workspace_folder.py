"""The folder that the assistant works in: which one it is, and that nothing in it decides about LoCAL2 itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from local.config import SystemConfig
from local.errors import ConfigError
from local.runtime.participant import WORKSPACE


def prepared_workspace(system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> Path:
    """The folder that `system` names, or the one in the data directory, which is made if need be. Raises `ConfigError`
    for one that is not there, or that holds what decides about LoCAL2."""
    default = data_dir / WORKSPACE
    if system.workspace is None:
        default.mkdir(mode=0o700, exist_ok=True)
        return default
    return _allowed(system.workspace.expanduser(), system, data_dir, layers)


def require_allowed(folder: Path, system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> None:
    """Raises `ConfigError` for a folder that cannot be the workspace."""
    _allowed(folder, system, data_dir, layers)


def _allowed(named: Path, system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> Path:
    if not named.is_absolute():
        raise ConfigError(f"workspace: {named} is no absolute path; write it from / or ~ on")
    if not named.is_dir():
        raise ConfigError(f"workspace: {named} is no folder; make it first")
    root = named.resolve()
    own = (data_dir / WORKSPACE).resolve()
    for what, folder in _deciding(system, data_dir, layers):
        if folder.is_relative_to(root) or (root.is_relative_to(folder) and not root.is_relative_to(own)):
            raise ConfigError(f"workspace: {named} cannot be it, because of {folder}, which holds {what}")
    if Path.home().resolve().is_relative_to(root):
        raise ConfigError(f"workspace: {named} is or holds your home directory; choose a folder within it")
    return root


def _deciding(system: SystemConfig, data_dir: Path, layers: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """What nobody may change who has been told to by a text, and where it lies."""
    yield "what LoCAL2 keeps", data_dir.resolve()
    yield from (("settings", layer.resolve()) for layer in layers)
    yield from (("tools of your own", folder.resolve()) for folder in system.python_path)
    yield "LoCAL2 itself", Path(__file__).resolve().parents[1]
