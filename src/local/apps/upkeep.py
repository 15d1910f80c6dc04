"""`local2 backup`, `restore` and `rebuild`: what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from local.apps.run_directory import RunDirectory
from local.environment import data_dir as find_data_dir
from local.errors import ConfigError
from local.upkeep import backup
from local.upkeep.missing import STORES
from local.upkeep.rebuild import NOT_ON_RECORD, counted, has_any, rebuild

Say = Callable[[str], object]


def run_backup(folder: Path, data_dir: Path | None, say: Say) -> None:
    """Copy the data directory, whether a system runs on it or not. Raises `LocalError`."""
    source = find_data_dir(data_dir)
    number = backup.back_up(source, folder)
    say(f"{folder} has all of {source}: {number} files")


def run_restore(folder: Path, data_dir: Path | None, say: Say, *, replace: bool) -> None:
    """Put a backup in the place of the data directory. Raises `LocalError`, `AlreadyRunning` while a system runs."""
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    with directory.lock():
        aside = backup.restore(folder, directory.data_dir, replace=replace)
    if aside is not None:
        say(f"what was there lies in {aside} now")
    say(f"{directory.data_dir} is as it was when {folder} was made")


def run_rebuild(what: str, data_dir: Path | None, say: Say) -> None:
    """Make stores anew from the journal. Raises `LocalError`, `AlreadyRunning` while a system runs."""
    if what not in (*STORES, "all"):
        raise ConfigError(f"{what!r} is none of {', '.join(STORES)}, all")
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    with directory.lock():
        folder = directory.data_dir
        there = [name for name in STORES if (folder / STORES[name].path).exists() or has_any(folder, name)]
        for name in there if what == "all" else [what]:
            number = rebuild(folder, name)
            say(f"{name} has {number} {counted(name)} from the journal; what was there lies beside it")
            say(f"  not on record: {NOT_ON_RECORD[name]}")
