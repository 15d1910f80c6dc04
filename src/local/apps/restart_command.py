"""`local2 restart NAME`: one participant of the system that runs."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from local.apps.command_line import DataDir
from local.apps.owner_token import owner_token
from local.apps.run_directory import RunDirectory
from local.apps.system_client import SystemClient
from local.environment import data_dir as find_data_dir
from local.errors import ConfigError

Name = Annotated[str, typer.Argument(metavar="NAME", help="As /health and `local2 tap` call it.")]


def restart(name: Name, data_dir: DataDir = None) -> None:
    """Stop a participant and start it again, with the settings that its file has now."""
    directory = find_data_dir(data_dir)
    facts = RunDirectory(directory).facts()
    if facts.api_url is None:
        raise ConfigError("the system that runs has no HTTP interface to ask; start it with --api")
    with SystemClient(facts.api_url, owner_token(directory)) as client:
        child = client.request("POST", f"/participants/{quote(name, safe='')}/restart", {})["participant"]
    if child["state"] == "failed":
        typer.echo(f"{name} has failed: {child['detail']}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{name} is {child['state']}" + (f", process {child['pid']}" if child["pid"] else ""))
