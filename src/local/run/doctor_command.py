"""`local2 doctor`: what keeps LoCAL2 from working."""

from __future__ import annotations

import typer

from local.cli.main import ConfigDir, DataDir, JsonOption


def doctor(
    as_json: JsonOption = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Look for what keeps LoCAL2 from working, and say what to do."""
    from local.run.doctor import run as examine

    raise typer.Exit(examine(config_dir=config_dir, data_dir=data_dir, as_json=as_json))
