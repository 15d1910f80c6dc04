"""`local2 backup`, `restore` and `rebuild`: what is kept, copied, put back and made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from local.apps.command_line import DataDir


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")],
    data_dir: DataDir = None,
) -> None:
    """Copy everything that is kept, also while the system runs."""
    from local.apps.upkeep import run_backup

    run_backup(folder, data_dir, typer.echo)


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `backup` has written.")],
    force: Annotated[bool, typer.Option("--force", help="Move aside what is there.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Put a backup in the place of the data directory, while no system runs on it."""
    from local.apps.upkeep import run_restore

    run_restore(folder, data_dir, typer.echo, replace=force)


def rebuild(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="conversation(_b), engrams, ratings or all.")] = "all",
    data_dir: DataDir = None,
) -> None:
    """Make a record, the memory or the ratings anew from the journal, while no system runs on it."""
    from local.apps.upkeep import run_rebuild

    run_rebuild(what, data_dir, typer.echo)
