"""`local2 model try | check`, beside the commands of `local.models`: they need the set-up, critic and memory."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from local.cli.main import ConfigDir, DataDir, visible
from local.core.config import layers_for
from local.core.environment import data_dir as find_data_dir
from local.models.commands import model_app, stock_of
from local.models.settings import choose_model, chosen_model, load_models
from local.run.trial import NAME as TRIAL_NAME
from local.run.trial import TrialModel


@model_app.command("try")
def try_one(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the download.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Install a very small model with its runtime, without Ollama. It answers from the next start on."""
    layers = layers_for(config_dir)
    stock = stock_of(layers, data_dir)
    trial = TrialModel(stock.folder.path, load_models(layers))
    if missing := trial.missing():
        for line in missing:
            typer.echo(line)
        if not yes and not typer.confirm("Download and use it?", default=True):
            raise typer.Exit(1)
        try:
            trial.install()
        except KeyboardInterrupt:
            typer.echo("\nstopped; run the same command to try again", err=True)
            raise typer.Exit(130) from None
    path = choose_model(layers, "llama_server", TRIAL_NAME, trial.file)
    typer.echo(f"{chosen_model(layers)} answers from the next start on; {path} was updated")


@model_app.command()
def check(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A name that `local2 model list` shows; default: the model that grades answers."
        ),
    ] = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Test whether a model can grade answers and extract facts. The result is stored. Exit status: 1 if the model
    fails.
    """
    from local.run.model_check import check as check_model  # half a second of imports

    layers = layers_for(config_dir)
    stock = stock_of(layers, data_dir)
    if not asyncio.run(
        check_model(layers, find_data_dir(data_dir), stock, model, lambda line: typer.echo(visible(line)))
    ):
        raise typer.Exit(1)
