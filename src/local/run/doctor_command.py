"""`local2 doctor`: finds problems of the installation."""

from __future__ import annotations

import typer

from local.cli.main import ConfigDir, DataDir, JsonOption


def doctor(
    as_json: JsonOption = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Find problems of the installation and say how to fix them. Exit status: 1 if a check fails."""
    from local.run.doctor import run as examine

    raise typer.Exit(examine(config_dir=config_dir, data_dir=data_dir, as_json=as_json))
