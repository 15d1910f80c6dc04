"""`local2 restart NAME`: one participant of the system that runs."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from local.apps.command_line import ApiOption, DataDir
from local.apps.console.answering_system import running_system

Name = Annotated[str, typer.Argument(metavar="NAME", help="As /health and `local2 tap` call it.")]


def restart(name: Name, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Stop a participant and start it again, with the settings that its file has now.

    Example: local2 restart web_search
    """
    with running_system(api, data_dir) as client:
        child = client.request("POST", f"/participants/{quote(name, safe='')}/restart", {})["participant"]
    if child["state"] == "failed":
        typer.echo(f"{name} has failed: {child['detail']}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{name} is {child['state']}" + (f", process {child['pid']}" if child["pid"] else ""))
